"""The types of the fields of ``config.json`` that are read outside of architectures.

An architecture checks the fields that it reads. These fields are read in many places, which rely on their
types.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

TokenId = Annotated[int, Meta(ge=0)]


class TextConfigForm(Struct, frozen=True):
    """``text_config`` of a model for text and images."""

    eos_token_id: TokenId | list[TokenId] | None = None
    max_position_embeddings: int | None = None
    rope_parameters: dict[str, Any] | None = None
    rope_scaling: dict[str, Any] | None = None


class FunctionForm(Struct, frozen=True):
    """``sentence_transformers`` of a cross-encoder."""

    activation_fn: str | None = None


class ConfigForm(TextConfigForm, frozen=True):
    """A configuration. Null counts as absent; fields not listed here may have any type."""

    architectures: list[str] | None = None
    model_type: str | None = None
    quantization_config: dict[str, Any] | None = None
    text_config: TextConfigForm | None = None
    is_causal: bool | None = None
    use_bidirectional_attention: bool | str | None = None
    is_matryoshka: bool | None = None
    matryoshka_dimensions: list[int] | None = None
    sentence_transformers: FunctionForm | None = None
    sbert_ce_default_activation_function: str | None = None
