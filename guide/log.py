"""The training log, a table in a text file."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path


class Log:
    """One stage's log."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self) -> None:
        """Forget the log of an earlier run."""
        self._path.unlink(missing_ok=True)

    def forget_after(self, step: int) -> None:
        """Drop lines that a resumed run writes again."""
        if self._path.exists():
            title, *rows = self._path.read_text(encoding="utf-8").splitlines(keepends=True)
            kept = (row for row in rows if int(row.partition(",")[0]) <= step)
            self._path.write_text(title + "".join(kept), encoding="utf-8")

    def write(self, row: Mapping[str, object]) -> None:
        """Add one line."""
        new = not self._path.exists()
        with self._path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, row.keys(), lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)
