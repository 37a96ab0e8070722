"""What the store knows of a model from its files' headers."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from llmd.api.errors import LlmdError
from llmd.api.plugins import Config
from llmd.models.class_names import architecture_names
from llmd.models.files import Stamps, stamps
from llmd.models.gguf.model_files import is_gguf
from llmd.models.model_path import files_of
from llmd.models.model_source import find_source

GGUF, SAFETENSORS = "gguf", "safetensors"


class StoredModel(msgspec.Struct, frozen=True):
    """A model directory. ``reason`` says why it cannot be used, and is empty where nothing speaks against it.

    ``directory`` may be a GGUF file as well. ``architecture`` is the configuration's own word, ``format`` the one that most of
    the weights' bytes have, ``file_format`` that of their files, ``size_bytes`` the size of the weights, ``context_len`` in tokens as the configuration states it. What a
    broken model does not tell is empty, 0 or None. ``source`` and ``commit`` are the hub's repository and its version,
    of a model that was pulled. ``base`` is the model underneath, of a derived one.
    """

    name: str
    directory: Path
    modified: datetime
    architecture: str = ""
    num_parameters: int = 0
    format: str = ""
    file_format: str = ""
    size_bytes: int = 0
    context_len: int | None = None
    builtin: bool = False
    reason: str = ""
    source: str = ""
    commit: str = ""
    base: str = ""

    @property
    def bits_per_weight(self) -> float:
        """Bits of the files' weights for each parameter, scales included; 0 where nothing is known."""
        return 8 * self.size_bytes / self.num_parameters if self.num_parameters else 0.0


def describe(name: str, directory: Path, *, builtin: bool = False) -> StoredModel:
    """Describe a directory from its configuration and the headers of its weights; never raises for its faults."""
    known = StoredModel(name, directory, _modified(directory), builtin=builtin)
    try:
        config = find_source(directory).read_config()
        known = msgspec.structs.replace(
            known,
            architecture=next(iter(architecture_names(config)), ""),
            context_len=_context_len(config),
        )
        return msgspec.structs.replace(known, **_weights(directory, stamps(files_of(directory))))
    except LlmdError as error:
        return msgspec.structs.replace(known, reason=str(error))


@functools.lru_cache(maxsize=256)
def _weights(directory: Path, _files: Stamps) -> dict[str, Any]:
    """What the headers of the weights say; lists ask for it again and again, and files change rarely."""
    bytes_by_dtype: Counter[str] = Counter()
    with find_source(directory).open_checkpoint() as checkpoint:
        for tensor in checkpoint.tensors.values():
            bytes_by_dtype[tensor.dtype.lower()] += tensor.size_bytes
        return {
            "num_parameters": checkpoint.num_parameters,
            "size_bytes": checkpoint.size_bytes,
            "file_format": GGUF if is_gguf(checkpoint.file.name) else SAFETENSORS,
            "format": max(bytes_by_dtype, key=lambda dtype: bytes_by_dtype[dtype], default=""),
        }


def _context_len(config: Config) -> int | None:
    """Models of text and images keep it in the part about text."""
    stated = (fields.get("max_position_embeddings") for fields in (config, config.get("text_config") or {}))
    return next(filter(None, stated), None)


def _modified(directory: Path) -> datetime:
    """When a file of the model was last written."""
    newest = 0.0
    for entry in (directory, *files_of(directory)):
        with contextlib.suppress(OSError):  # it has just gone
            newest = max(newest, entry.stat().st_mtime)
    return datetime.fromtimestamp(newest, UTC)
