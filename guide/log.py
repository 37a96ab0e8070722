"""The training log, a table in a text file."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

PATH = Path(__file__).parent / "training-log.csv"


def begin() -> None:
    """Forget the log of an earlier run."""
    PATH.unlink(missing_ok=True)


def forget_after(step: int) -> None:
    """Drop lines that a resumed run writes again."""
    if PATH.exists():
        title, *rows = PATH.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = (row for row in rows if int(row.partition(",")[0]) <= step)
        PATH.write_text(title + "".join(kept), encoding="utf-8")


def write(row: Mapping[str, object]) -> None:
    """Add one line."""
    new = not PATH.exists()
    with PATH.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, row.keys(), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)
