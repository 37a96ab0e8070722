"""Read ``params.json``, the configuration of a model in Meta's layout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec

from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.models.json_file import converted, read_object

PARAMS_FILE = "params.json"
MAX_PARAMS_BYTES = 1_000_000

_Size = Annotated[int, msgspec.Meta(ge=1, le=1 << 24)]
_Number = Annotated[float, msgspec.Meta(gt=0.0, le=1e12)]

NEUTRAL = {"activation": "silu", "causal": True, "model_type": "transformer"}
"""Values of other fields that change nothing. Null, false, 0 and empty values change nothing either."""
HARMLESS = {"max_batch_size", "model_parallel_size", "vision_encoder"}
"""Other fields that do not affect text generation."""


class Params(msgspec.Struct, frozen=True):
    """The fields that affect the computation: first those of Meta's Llama, then Mistral's additions."""

    dim: _Size
    n_layers: _Size
    n_heads: _Size
    norm_eps: _Number
    vocab_size: int
    """-1: the tokenizer's."""
    n_kv_heads: _Size | None = None
    multiple_of: _Size = 256
    ffn_dim_multiplier: _Number | None = None
    rope_theta: _Number | None = None
    use_scaled_rope: bool = False
    rope_scaling_factor: _Number | None = None
    max_seq_len: _Size | None = None
    """The longest context; neither Meta nor Mistral writes it."""
    head_dim: _Size | None = None
    hidden_dim: _Size | None = None
    sliding_window: _Size | None = None
    tied_embeddings: bool = False
    max_position_embeddings: _Size | None = None

    @property
    def kv_heads(self) -> int:
        """Number of KV heads; by default one for each query head."""
        return self.n_kv_heads or self.n_heads

    @property
    def is_mistral(self) -> bool:
        """Whether Mistral wrote the file. Only Mistral states the feed-forward width; Meta uses a formula."""
        return self.hidden_dim is not None

    @property
    def feed_forward_width(self) -> int:
        """As stated, or two thirds of four times ``dim``, times the multiplier, up to the next multiple.

        The earlier steps are rounded down to integers. Source: the reference code of
        github.com/meta-llama/llama.
        """
        if self.hidden_dim is not None:
            return self.hidden_dim
        width = 2 * 4 * self.dim // 3
        if self.ffn_dim_multiplier is not None:
            width = int(self.ffn_dim_multiplier * width)
        return -(-width // self.multiple_of) * self.multiple_of


def read_params(path: Path) -> Params:
    """Read and check the file.

    Raises:
        CheckpointError: it is missing or damaged, a value is not a valid size, or sizes contradict each
            other.
        UnsupportedModelError: it has an unknown field that may affect the computation.
    """
    values = read_object(path, max_bytes=MAX_PARAMS_BYTES)
    _refuse_unknown(values, path)
    params = converted(values, Params, file=str(path))
    if params.n_heads % params.kv_heads:
        raise _contradiction(f"n_kv_heads {params.kv_heads} does not divide n_heads {params.n_heads}", path)
    if params.head_dim is None and params.dim % params.n_heads:
        raise _contradiction(f"dim {params.dim} is not a multiple of n_heads {params.n_heads}", path)
    return params


def _refuse_unknown(values: dict[str, Any], path: Path) -> None:
    known = {*Params.__struct_fields__, *HARMLESS}
    for name, value in values.items():
        if name not in known and value and NEUTRAL.get(name) != value:
            raise UnsupportedModelError(
                f"{path}: {name} is {repr(value)[:60]}, which llmd does not support for this layout",
                hint="use the model's config.json and its Hugging Face weights; or remove the field from params.json "
                "if you know that answers do not depend on it",
            )


def _contradiction(message: str, path: Path) -> CheckpointError:
    return CheckpointError(
        message, file=str(path), hint="copy params.json again from where the model came from"
    )
