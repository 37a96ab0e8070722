"""Typed access to the metadata of a GGUF file."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Container, Mapping
from typing import Any

import numpy as np

from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.models.gguf.metadata import Metadata
from llmd.models.json_file import DAMAGED

_MISSING: Any = object()

WINDOW, PATTERN = "attention.sliding_window", "attention.sliding_window_pattern"
LATENT_RANK, ROTATED = "attention.kv_lora_rank", "rope.dimension_count"
ARCHITECTURE = "general.architecture"
MAX_NAME_LEN = 100
VARIED = {"gemma4": ("attention.head_count_kv", "feed_forward_length")}
"""By architecture, the keys whose values may differ between layers: `GgufFields.each` reads them."""


class MetadataFields:
    """Typed values of the metadata, by keys without ``prefix``.

    ``default`` is returned for a missing key; without it the key is required. Every method raises
    `CheckpointError` if a required key is missing or a value has the wrong type.
    """

    def __init__(self, metadata: Metadata, prefix: str = "") -> None:
        self._metadata = metadata
        self._prefix = prefix

    def full_key(self, key: str) -> str:
        return f"{self._prefix}{key}"

    def integer(self, key: str, default: int | None = _MISSING) -> Any:
        value = self._get(key, default)
        if value is not default and (isinstance(value, bool) or not isinstance(value, int)):
            raise self._wrong(key, value, "an integer")
        return value

    def real(self, key: str, default: float | None = _MISSING) -> Any:
        """Return a finite number."""
        value = self._get(key, default)
        if value is default:
            return value
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self._wrong(key, value, "a number")
        return float(value)

    def positive(self, key: str, default: float) -> float:
        """Return a number above 0."""
        value: float = self.real(key, default)
        if value <= 0:
            raise self._wrong(key, value, "a number above 0")
        return value

    def text(self, key: str, default: str = _MISSING) -> str:
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, value, "a text")
        return value

    def refuse(self, key: str, value: object, known: str) -> UnsupportedModelError:
        """Return the error for a well-formed value that llmd does not support."""
        return UnsupportedModelError(
            f"{self._metadata.file}: {self.full_key(key)} is {reprlib.repr(value)}, which llmd does not support; "
            f"supported: {known}",
            hint="use another model",
        )

    def contradict(self, message: str, key: str) -> CheckpointError:
        """Return the error for a value that is invalid or contradicts other keys."""
        return CheckpointError(f"{self.full_key(key)} {message}", file=self._metadata.file, hint=DAMAGED)

    def _get(self, key: str, default: Any) -> Any:
        value = self._metadata.get(self.full_key(key), default)
        if value is _MISSING:
            raise CheckpointError(
                f"the key {self.full_key(key)} is missing", file=self._metadata.file, hint=DAMAGED
            )
        return value

    def _wrong(self, key: str, value: object, expected: str) -> CheckpointError:
        return self.contradict(f"is {reprlib.repr(value)}, expected {expected}", key)


class GgufFields(MetadataFields):
    """The keys with the architecture's prefix; also knows which ``tensors`` exist."""

    def __init__(self, metadata: Metadata, tensors: Container[str]) -> None:
        self.architecture = architecture_name(metadata)
        super().__init__(metadata, f"{self.architecture}.")
        self._tensors = tensors

    def has_tensor(self, name: str) -> bool:
        return name in self._tensors

    def flags(self, key: str) -> list[bool] | int | None:
        """Return a truth value for each layer, a number, or None if the key is missing."""
        value = super()._get(key, None)
        if isinstance(value, np.ndarray):
            return [bool(flag) for flag in value]
        if value is not None and not isinstance(value, int):
            raise self._wrong(key, value, "a list of truth values, or a number")
        return value

    def each(self, key: str, num_layers: int) -> list[int]:
        """Return an integer or a truth value for each layer; a single one is that of all layers."""
        value = super()._get(key, _MISSING)
        values = value.tolist() if isinstance(value, np.ndarray) else [value] * num_layers
        if not all(isinstance(one, int) for one in values):
            raise self._wrong(key, value, "integers or truth values")
        if len(values) != num_layers:
            raise self.contradict(f"has {len(values)} values for {num_layers} layers", key)
        return values

    def numbers(self, key: str) -> list[int | float]:
        """Return the numbers of a list, or a single one; none if the key is missing.

        A float32 is returned as its shortest decimal.
        """
        value = super()._get(key, None)
        values = value.tolist() if isinstance(value, np.ndarray) else [value]
        if value is None:
            return []
        if any(isinstance(one, bool) or not isinstance(one, int | float) for one in values):
            raise self._wrong(key, value, "numbers")
        is_short = isinstance(value, np.ndarray) and value.dtype == np.float32
        return [float(str(one)) for one in value] if is_short else values

    def _get(self, key: str, default: Any) -> Any:
        """Return the value; of a list, the one that all layers share that have such a part; others have 0. If
        it varies, return the first.
        """
        value = super()._get(key, default)
        return self._of_all_layers(key, value) if isinstance(value, np.ndarray) else value

    def _of_all_layers(self, key: str, values: np.ndarray[Any, Any]) -> object:
        if len(values) and key in VARIED.get(self.architecture, ()):
            return values[0].item()
        different = np.unique(values[values != 0]) if np.any(values) else np.unique(values)
        if len(different) > 1:
            raise self.refuse(key, values.tolist(), "one number for all layers")
        return different[0].item() if len(different) else None


def architecture_name(metadata: Metadata) -> str:
    """Return ``general.architecture``.

    Raises:
        CheckpointError: it is missing or not a name.
    """
    name = metadata.get(ARCHITECTURE)
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= MAX_NAME_LEN:
        raise CheckpointError(
            f"the key {ARCHITECTURE} is missing or not a name", file=metadata.file, hint=DAMAGED
        )
    return name


def token_ids(metadata: Mapping[str, Any], *names: str) -> list[int]:
    """Return the ids of special tokens by names such as ``eos``, in this order; missing ones are left out."""
    found = (metadata.get(f"tokenizer.ggml.{name}_token_id") for name in names)
    return list(dict.fromkeys(token for token in found if isinstance(token, int)))


def head_dim(fields: GgufFields) -> int:
    """Return the head dimension, at least 1: of latent attention, that of rotated elements. Any other model
    whose values have another one than keys is refused.
    """
    if fields.integer(LATENT_RANK, 0):
        rotated: int = fields.integer(ROTATED)
        return max(1, rotated)
    heads = max(1, fields.integer("attention.head_count"))
    width: int = fields.integer("attention.key_length", fields.integer("embedding_length") // heads)
    if width < 1:
        raise fields.contradict(f"makes heads of {width} elements", "attention.key_length")
    if (values := fields.integer("attention.value_length", width)) != width:
        raise fields.refuse("attention.value_length", values, f"{width}, the width of keys")
    return width
