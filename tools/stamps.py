"""Runs steps only if their inputs have changed."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Stamps:
    """Digests of the inputs of finished steps, stored in the ``folder`` that those steps create.

    Deleting the folder also deletes the stamps, so the steps run again.
    """

    folder: Path

    def run(
        self,
        step: str,
        inputs: Iterable[Path],
        action: Callable[[], None],
        *,
        facts: str = "",
        note: str = "",
    ) -> bool:
        """Run ``action`` unless it has already finished with the same ``inputs`` and ``facts``.

        Returns whether it ran. ``note`` is printed after the name of the step.

        A folder in ``inputs`` stands for every file below it.
        """
        stamp = self.folder / f".{step}.stamp"
        digest = digest_files(inputs, facts)
        if stamp.exists() and stamp.read_text() == digest:
            return False
        print(f"setup: {step}{note}", flush=True)
        stamp.unlink(missing_ok=True)
        action()
        stamp.write_text(digest)
        return True

    def forget(self, step: str) -> None:
        """Let a step run again."""
        (self.folder / f".{step}.stamp").unlink(missing_ok=True)


@contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """Wait until no other process holds ``lock``, then hold it."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def digest_files(inputs: Iterable[Path], facts: str) -> str:
    """Return a SHA-256 over the names and contents of all files, in a stable order."""
    total = hashlib.sha256(facts.encode())
    for path in sorted({file for entry in inputs for file in files_below(entry)}):
        content = path.read_bytes()
        total.update(f"{path}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()


def files_below(entry: Path) -> list[Path]:
    """Return ``entry`` itself, or the files below it except build products."""
    if not entry.is_dir():
        return [entry]
    leavings = {"__pycache__", "build", "dist"}
    return [
        path
        for path in entry.rglob("*")
        if path.is_file() and not leavings.intersection(path.relative_to(entry).parts)
    ]
