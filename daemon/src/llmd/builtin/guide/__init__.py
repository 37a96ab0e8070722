"""The guide: a small model shipped with llmd, so that it works without a download.

This package holds only data; the `guide` folder of the repository trains the model.
"""

from __future__ import annotations

from pathlib import Path


def guide_directory() -> Path:
    """Return the guide's model directory, in the Hugging Face layout."""
    return Path(__file__).parent
