"""Describe a model from the headers of its files."""

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
    """A model of the store. Fields that a broken model does not reveal are empty, 0 or None."""

    name: str
    directory: Path
    """The model directory, or a GGUF file."""
    modified: datetime
    architecture: str = ""
    """As the configuration names it."""
    num_parameters: int = 0
    format: str = ""
    """The dtype that takes the most bytes of the weights."""
    file_format: str = ""
    """``gguf`` or ``safetensors``."""
    size_bytes: int = 0
    """Size of the weights."""
    context_len: int | None = None
    """In tokens, as the configuration states it."""
    builtin: bool = False
    reason: str = ""
    """Why the model cannot be used; empty if no fault was found."""
    source: str = ""
    """The hub's repository, if the model was pulled."""
    commit: str = ""
    """The commit in that repository."""
    base: str = ""
    """The base model, if this one is derived."""

    @property
    def bits_per_weight(self) -> float:
        """Bits stored per parameter, including scales; 0 if the number of parameters is unknown."""
        return 8 * self.size_bytes / self.num_parameters if self.num_parameters else 0.0


def with_adapter(model: StoredModel, name: str, directory: Path) -> StoredModel:
    """Describe a model with the LoRA adapter in a directory, under the adapter's name."""
    return msgspec.structs.replace(
        model, name=name, directory=directory, base=model.name, builtin=False, source="", commit=""
    )


def describe(name: str, directory: Path, *, builtin: bool = False) -> StoredModel:
    """Describe a model from its configuration and the headers of its weights; a broken model is no error."""
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
    """Read the headers of the weights. Cached, because listings repeat and files rarely change."""
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
    """Return the context length; models for text and images state it in ``text_config``."""
    stated = (fields.get("max_position_embeddings") for fields in (config, config.get("text_config") or {}))
    return next(filter(None, stated), None)


def _modified(directory: Path) -> datetime:
    """Return when a file of the model was last written."""
    newest = 0.0
    for entry in (directory, *files_of(directory)):
        with contextlib.suppress(OSError):  # just removed
            newest = max(newest, entry.stat().st_mtime)
    return datetime.fromtimestamp(newest, UTC)
