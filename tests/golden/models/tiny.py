"""What a tiny model is: a configuration, a seed and how its checkpoint is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.golden.weights import draw_tokens

PROMPT_LEN = 45
NUM_GREEDY = 64
CONTEXT_LEN = 128


@dataclass(frozen=True)
class TinyModel:
    """One golden case.

    ``config`` is its ``config.json``; ``seed`` names the streams of weights and prompt; ``context_len`` is
    the engine's context window, which fixes length-dependent RoPE; ``gains`` overrides the spread of tensors
    by their last name (see `tests.golden.tensors`).
    """

    name: str
    config: Mapping[str, Any]
    seed: int = 1
    dtype: Literal["f32", "f16", "bf16"] = "f32"
    num_shards: int = 1
    context_len: int = CONTEXT_LEN
    gains: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_quantised(self) -> bool:
        """Whether some matrices are stored in an integer format."""
        return "quantization_config" in self.config

    @property
    def prompt(self) -> list[int]:
        """Token ids, longer than every sliding window here."""
        return draw_tokens(self.seed, PROMPT_LEN, self.config["vocab_size"])


def config(architecture: str, model_type: str, **fields: Any) -> dict[str, Any]:
    """A ``config.json`` with what every case here shares.

    ``rms_norm_eps`` is large so that a wrong one shows; no end-of-sequence id, so that greedy runs are full
    length.
    """
    shared: dict[str, Any] = {
        "architectures": [architecture],
        "model_type": model_type,
        "hidden_act": "silu",
        "max_position_embeddings": CONTEXT_LEN,
        "rms_norm_eps": 1e-3,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    return shared | fields
