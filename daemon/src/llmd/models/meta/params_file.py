"""``params.json``: what a model in Meta's layout says about itself, and what it leaves to its readers."""

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
"""Values of further fields that say what holds anyway, as null, false, 0 and what is empty do."""
HARMLESS = {"max_batch_size", "model_parallel_size", "vision_encoder"}
"""Further fields that text does not depend on."""


class Params(msgspec.Struct, frozen=True):
    """The fields that decide what is computed. Those of Meta's Llama, then those that Mistral writes as well.

    ``vocab_size`` -1 leaves it to the tokenizer. ``max_seq_len`` is the longest context, which neither of them states.
    """

    dim: _Size
    n_layers: _Size
    n_heads: _Size
    norm_eps: _Number
    vocab_size: int
    n_kv_heads: _Size | None = None
    multiple_of: _Size = 256
    ffn_dim_multiplier: _Number | None = None
    rope_theta: _Number | None = None
    use_scaled_rope: bool = False
    rope_scaling_factor: _Number | None = None
    max_seq_len: _Size | None = None
    head_dim: _Size | None = None
    hidden_dim: _Size | None = None
    sliding_window: _Size | None = None
    tied_embeddings: bool = False
    max_position_embeddings: _Size | None = None

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values; one for each of the queries where nothing else is said."""
        return self.n_kv_heads or self.n_heads

    @property
    def is_mistral(self) -> bool:
        """Mistral states the width of the feed-forward network, Meta what it follows from."""
        return self.hidden_dim is not None

    @property
    def feed_forward_width(self) -> int:
        """As stated, or two thirds of four times ``dim``, times the multiplier, up to the next multiple.

        Each step is cut to an integer. Source: the reference code of github.com/meta-llama/llama.
        """
        if self.hidden_dim is not None:
            return self.hidden_dim
        width = 2 * 4 * self.dim // 3
        if self.ffn_dim_multiplier is not None:
            width = int(self.ffn_dim_multiplier * width)
        return -(-width // self.multiple_of) * self.multiple_of


def read_params(path: Path) -> Params:
    """Read the file.

    Raises:
        CheckpointError: it is missing or damaged, a value is no size, or sizes contradict each other.
        UnsupportedModelError: it has a field that may change what is computed, and that is not known here.
    """
    values = read_object(path, max_bytes=MAX_PARAMS_BYTES)
    _refuse_unknown(values, path)
    params = converted(values, Params, file=str(path))
    if params.n_heads % params.kv_heads:
        raise _contradiction(f"n_kv_heads {params.kv_heads} does not divide n_heads {params.n_heads}", path)
    if params.head_dim is None and params.dim % params.n_heads:
        raise _contradiction(f"dim {params.dim} is no multiple of n_heads {params.n_heads}", path)
    return params


def _refuse_unknown(values: dict[str, Any], path: Path) -> None:
    known = {*Params.__struct_fields__, *HARMLESS}
    for name, value in values.items():
        if name not in known and value and NEUTRAL.get(name) != value:
            raise UnsupportedModelError(
                f"{path}: {name} is {repr(value)[:60]}, which llmd does not compute for this layout",
                hint="take the model's config.json and its Hugging Face weights; or take the field out of params.json if "
                "you know that answers do not depend on it",
            )


def _contradiction(message: str, path: Path) -> CheckpointError:
    return CheckpointError(message, file=str(path), hint="take params.json from where the model came from")
