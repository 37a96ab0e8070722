"""Describes models to Ollama's clients, from their configuration and the headers of their weights."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from llmd.api.errors import LlmdError
from llmd.api.plugins import Config
from llmd.models.config_file import read_config
from llmd.models.model_path import files_of, is_model_path
from llmd.registry.derived import DerivedModel
from llmd.registry.stored_model import SAFETENSORS, StoredModel
from llmd.server.models.known_models import KnownModel

# Ollama's name of a value, and its key in configurations.
_INFO = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "rope.freq_base": "rope_theta",
    "vocab_size": "vocab_size",
}


class Description(Struct, frozen=True):
    """A model in the store and its configuration; for a model of text and images, that of the text part."""

    stored: StoredModel
    config: Config

    @property
    def family(self) -> str:
        return str(self.config.get("model_type") or self.stored.architecture or "unknown")

    def details(self, parent: str = "") -> dict[str, Any]:
        """Return the short form, for lists."""
        return {
            "parent_model": parent,
            "format": self.stored.file_format or SAFETENSORS,
            "family": self.family,
            "families": [self.family],
            "parameter_size": human_count(self.stored.num_parameters),
            "quantization_level": self.stored.format.upper(),
            "context_length": self.stored.context_len,
            "embedding_length": self._integer("hidden_size"),
        }

    def info(self) -> dict[str, Any]:
        """Return the long form, with GGUF's names."""
        stated = {f"{self.family}.{name}": self.config.get(key) for name, key in _INFO.items()}
        general = {
            "general.architecture": self.family,
            "general.basename": self.stored.name,
            "general.parameter_count": self.stored.num_parameters,
        }
        numbers = {name: value for name, value in stated.items() if _is_number(value)}
        return general | {f"{self.family}.context_length": self.stored.context_len} | numbers

    def _integer(self, name: str) -> int | None:
        value = self.config.get(name)
        return value if isinstance(value, int) else None


def describe_model(stored: StoredModel) -> Description:
    """Describe a model; an unreadable configuration counts as empty."""
    try:
        config = read_config(stored.directory)
    except LlmdError:
        config = {}
    return Description(stored, {**config, **(config.get("text_config") or {})})


def digest(directory: Path, record: DerivedModel | None = None) -> str:
    """Return 64 hex digits that change with the model's files and with what a derived model changes.

    A copy has those of its source. They are a hash of names, sizes and times: reading gigabytes for every
    list would be too slow.
    """
    files = files_of(directory) if is_model_path(directory) else []
    known = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    changes = b""
    if record is not None and not record.is_copy:
        changes = msgspec.json.encode(msgspec.structs.replace(record, created=0.0))
    return hashlib.sha256(repr(known).encode() + changes).hexdigest()


def parent_of(model: KnownModel) -> str:
    """Return the base of a derived model; empty for other models and for copies, as with Ollama."""
    return model.record.base if model.record and not model.record.is_copy else ""


def human_count(number: int) -> str:
    """Format 1234567890 as 1.2B, as in names of models."""
    for size, letter in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return str(number)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
