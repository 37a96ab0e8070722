"""What the contents of KV blocks depend on beside tokens: model, arithmetic, layout."""

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
    """Names model, KV dtype, and of each stage the device's ``kv_layout`` and its program.

    A model's files are told from others by size and by when they were last changed, renamed or replaced, to the nanosecond:
    reading gigabytes to hash them would take longer than computing the cache anew.
    """
    parts = [version(CORE_DISTRIBUTION), kv_dtype, *_files(directory)]
    parts += [text for layout, program in stages for text in (layout, repr(program))]
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()


def _files(directory: Path) -> Iterable[str]:
    for path in files_of(directory):
        stat = path.stat()
        yield f"{path.name}:{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ctime_ns}"
