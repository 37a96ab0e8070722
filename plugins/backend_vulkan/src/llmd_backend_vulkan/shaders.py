"""The compiled shaders of this package. ``python -m tools.shaders`` compiles them from ``shaders/*.comp``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "shaders"


@cache
def spirv(name: str) -> bytes:
    """Return the SPIR-V of a shader."""
    return (FOLDER / f"{name}.spv").read_bytes()
