"""The guide: a small model of llmd's own that answers questions about llmd. Its files lie in this folder."""

from __future__ import annotations

from pathlib import Path


def guide_directory() -> Path:
    """Where the model's files are."""
    return Path(__file__).parent
