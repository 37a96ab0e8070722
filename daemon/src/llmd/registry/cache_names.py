"""Names of models in the cache directory."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path


def cache_name(directory: Path) -> str:
    """A file name for a model directory, the same for every path that leads to it."""
    return blake2b(str(directory.resolve()).encode(errors="surrogateescape"), digest_size=16).hexdigest()
