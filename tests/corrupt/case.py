"""One way to damage a model directory, and the error that must come of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from llmd.api import LlmdError

Damage = Callable[[Path], object]
"""Changes the model in a directory; what it returns is of no use."""


@dataclass(frozen=True)
class Case:
    """``damage`` changes a valid directory; the error's text must hold every one of ``mentions``.

    These name the file, the tensor or field, and what is wrong with it.
    """

    name: str
    damage: Damage
    error: type[LlmdError]
    mentions: tuple[str, ...]


def cut(path: Path, num_bytes: int) -> None:
    """Take bytes off the end of a file."""
    os.truncate(path, path.stat().st_size - num_bytes)
