"""Examples under the help of a command."""

from __future__ import annotations

KEEP_LINES = "\b"
"""What makes click leave the line ends of a paragraph alone."""


def examples(*lines: str) -> str:
    """Return the epilog that shows command lines as they are typed."""
    return "\n".join([KEEP_LINES, "Examples:", *(f"  {line}" for line in lines)])
