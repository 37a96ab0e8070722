"""Examples at the end of a command's help."""

from __future__ import annotations

KEEP_LINES = "\b"
"""Makes click keep the line breaks of a paragraph."""


def examples(*lines: str) -> str:
    """Return an epilog that lists command lines."""
    return "\n".join([KEEP_LINES, "Examples:", *(f"  {line}" for line in lines)])
