"""Fingerprints of everything that a file in the cache directory depends on."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from msgspec import structs

from llmd.api.kv import KVDtype
from llmd.api.program import Program
from llmd.host.names import CORE_DISTRIBUTION
from llmd.models.model_path import files_of


def kv_fingerprint(directory: Path, kv_dtype: KVDtype, stages: Sequence[tuple[str, Program]]) -> str:
    """Return the fingerprint of KV blocks: all that their contents depend on, except the tokens.

    These are the model files, the KV dtype, and ``kv_layout`` and program of each stage.
    """
    texts = ((layout, repr(structs.replace(program, expert_bytes=None))) for layout, program in stages)
    return _fingerprint(directory, kv_dtype, *itertools.chain.from_iterable(texts))


def packing_fingerprint(directory: Path, device: str, program: Program) -> str:
    """Return the fingerprint of packed weights: model files, device, weights and precision, but not the
    layout.
    """
    rounded = [] if program.precision == "f32" else [program.precision]
    return _fingerprint(directory, device, repr(program.weights), *rounded)


def _fingerprint(directory: Path, *parts: str) -> str:
    """Hash the parts with the names, sizes and times of the model's files.

    The times of the last change, rename or replacement are in nanoseconds. The contents are not hashed:
    reading gigabytes would take longer than computing the cached data again.
    """
    texts = [version(CORE_DISTRIBUTION), *_files(directory), *parts]
    return hashlib.sha256("\0".join(texts).encode(errors="surrogateescape")).hexdigest()


def _files(directory: Path) -> Iterable[str]:
    for path in files_of(directory):
        stat = path.stat()
        yield f"{path.name}:{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ctime_ns}"
