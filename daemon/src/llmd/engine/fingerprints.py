"""Fingerprints of everything that a file in the cache directory depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from msgspec import structs

from llmd.api.adapter_ops import Adapt
from llmd.api.kv import KVDtype
from llmd.api.program import Program
from llmd.host.names import CORE_DISTRIBUTION
from llmd.models.model_path import files_of


def kv_fingerprint(
    directory: Path,
    kv_dtype: KVDtype,
    stages: Sequence[tuple[str, Program]],
    adapters: Mapping[str, str] | None = None,
) -> str:
    """Return the fingerprint of KV blocks: all that their contents depend on, except the tokens.

    These are the model files, those of ``adapters`` (directories by name), the KV dtype, and ``kv_layout``
    and program of each stage.
    """
    of_adapters = (text for name, place in (adapters or {}).items() for text in (name, *_files(Path(place))))
    stated = ((layout, repr(structs.replace(program, expert_bytes=None))) for layout, program in stages)
    programs = (text for pair in stated for text in pair)
    return _fingerprint(directory, kv_dtype, *programs, *of_adapters)


def packing_fingerprint(directory: Path, device: str, program: Program) -> str:
    """Return the fingerprint of packed weights: model files, device, weights and precision, but not the
    layout.

    Weights of adapters, which are not packed, do not change it.
    """
    rounded = [] if program.precision == "f32" else [program.precision]
    of_adapters = {
        index for slotted in program.ops if isinstance(slotted.op, Adapt) for index in slotted.weights
    }
    weights = tuple(weight for i, weight in enumerate(program.weights) if i not in of_adapters)
    return _fingerprint(directory, device, repr(weights), *rounded)


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
