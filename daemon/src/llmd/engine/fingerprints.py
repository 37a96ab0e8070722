"""What files in the cache directory depend on: the files of a model, the program, the arithmetic, the layout."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from llmd.api.kv import KVDtype
from llmd.api.program import Program
from llmd.host.names import CORE_DISTRIBUTION
from llmd.models.model_path import files_of


def kv_fingerprint(directory: Path, kv_dtype: KVDtype, stages: Sequence[tuple[str, Program]]) -> str:
    """What the contents of KV blocks depend on beside tokens: KV dtype, and each stage's ``kv_layout`` and program."""
    return _fingerprint(
        directory, kv_dtype, *(text for layout, program in stages for text in (layout, repr(program)))
    )


def packing_fingerprint(directory: Path, device: str, program: Program) -> str:
    """What the weights that a device has packed depend on, beside its own layout."""
    return _fingerprint(directory, device, repr(program.weights))


def _fingerprint(directory: Path, *parts: str) -> str:
    """A model's files are told from others by size and by when they were last changed, renamed or replaced, to the
    nanosecond: reading gigabytes to hash them would take longer than computing anew what depends on them.
    """
    told = [version(CORE_DISTRIBUTION), *_files(directory), *parts]
    return hashlib.sha256("\0".join(told).encode(errors="surrogateescape")).hexdigest()


def _files(directory: Path) -> Iterable[str]:
    for path in files_of(directory):
        stat = path.stat()
        yield f"{path.name}:{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ctime_ns}"
