"""A model's recommended sampling and its end tokens: ``generation_config.json``, or keys of a GGUF file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from llmd.api.errors import ModelError
from llmd.chat.json_file import convert_json, read_json
from llmd.models.config_form import TokenId
from llmd.models.files import is_named
from llmd.models.gguf.model_metadata import gguf_metadata

_Positive = Annotated[float, msgspec.Meta(ge=0.0)]
_Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]

GGUF_KEYS = {
    "temperature": "general.sampling.temp",
    "top_p": "general.sampling.top_p",
    "top_k": "general.sampling.top_k",
    "min_p": "general.sampling.min_p",
    "repetition_penalty": "general.sampling.penalty_repeat",
}
"""The same fields in GGUF files; llama.cpp's converter has written them since late 2025."""


class GenerationDefaults(msgspec.Struct, frozen=True):
    """Sampling settings for requests that do not set them; None: the model's files do not state the value.

    ``max_new_tokens`` is ignored: requests and the server set the limits.
    """

    temperature: float | None = None
    """0 is greedy."""
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    typical_p: float | None = None
    eos_ids: tuple[int, ...] = ()


class _File(msgspec.Struct, frozen=True):
    do_sample: bool | None = None
    temperature: _Positive | None = None
    top_p: _Share | None = None
    top_k: Annotated[int, msgspec.Meta(ge=0)] | None = None
    min_p: _Share | None = None
    repetition_penalty: Annotated[float, msgspec.Meta(gt=0.0)] | None = None
    typical_p: Annotated[float, msgspec.Meta(gt=0.0, le=1.0)] | None = None
    eos_token_id: TokenId | list[TokenId] | None = None


def read_generation_defaults(directory: Path) -> GenerationDefaults:
    """Return the defaults that the model in ``directory`` states; ``directory`` may be a GGUF file.

    Raises:
        ModelError: the file cannot be read, or a value has the wrong type or range.
    """
    path = directory / "generation_config.json"
    file = read_json(path, _File, error=ModelError) if is_named(path) else _of_gguf(directory)
    return GenerationDefaults(
        temperature=0.0 if file.do_sample is False else file.temperature,
        top_p=file.top_p,
        top_k=file.top_k,
        min_p=file.min_p,
        repetition_penalty=file.repetition_penalty,
        typical_p=file.typical_p,
        eos_ids=listed_ids(file.eos_token_id),
    )


def _of_gguf(directory: Path) -> _File:
    """Return what a GGUF file's keys state, without end tokens: its configuration has these."""
    metadata = gguf_metadata(directory)
    if metadata is None:
        return _File()
    stated = {name: metadata[key] for name, key in GGUF_KEYS.items() if key in metadata}
    return convert_json(Path(metadata.file), stated, _File, error=ModelError)


def listed_ids(value: int | list[int] | None) -> tuple[int, ...]:
    """Return an ``eos_token_id`` as a tuple; it may be one id, a list of ids, or absent."""
    if value is None:
        return ()
    return (value,) if isinstance(value, int) else tuple(value)
