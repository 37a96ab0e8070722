"""The guide: the small model that llmd ships, so that it works without a download. Only data; the `guide` folder
of the repository trains it.
"""

from __future__ import annotations

from pathlib import Path


def guide_directory() -> Path:
    """The guide's model directory, in the Hugging Face layout."""
    return Path(__file__).parent
