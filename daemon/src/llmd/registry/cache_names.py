"""File names for models in the cache directory."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path


def cache_name(directory: Path) -> str:
    """Return a file name for a model directory, the same for every path to it."""
    return blake2b(str(directory.resolve()).encode(errors="surrogateescape"), digest_size=16).hexdigest()
