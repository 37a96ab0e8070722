from __future__ import annotations

from typing import Any

import msgspec
import pytest

from llmd.models.meta.config import context_len, to_config
from llmd.models.meta.params_file import Params

LLAMA2 = Params(dim=4096, n_layers=32, n_heads=32, norm_eps=1e-5, vocab_size=-1)
LLAMA31 = msgspec.structs.replace(LLAMA2, vocab_size=128256, rope_theta=500000.0, use_scaled_rope=True)
MISTRAL = Params(
    dim=4096, n_layers=32, n_heads=32, n_kv_heads=8, norm_eps=1e-5, vocab_size=32768, hidden_dim=14336
)


def test_meta_and_mistral_are_said_in_the_words_of_transformers() -> None:
    llama = to_config(LLAMA2, 32000)
    assert llama["architectures"] == ["LlamaForCausalLM"]
    assert (llama["intermediate_size"], llama["head_dim"], llama["vocab_size"]) == (11008, 128, 32000)
    assert (llama["rope_theta"], llama["rope_scaling"], llama["rope_interleave"]) == (10000.0, None, True)
    mistral = to_config(msgspec.structs.replace(MISTRAL, head_dim=160, sliding_window=4096), 32768)
    assert mistral["architectures"] == ["MistralForCausalLM"]
    assert (mistral["intermediate_size"], mistral["head_dim"]) == (14336, 160)
    assert (mistral["num_key_value_heads"], mistral["sliding_window"]) == (8, 4096)


@pytest.mark.parametrize(
    ("changes", "factor"),
    [({}, 8.0), ({"dim": 2048}, 32.0), ({"dim": 2048, "rope_scaling_factor": 16.0}, 16.0)],
)
def test_scaled_rotations_are_stretched_as_each_size_was(changes: dict[str, Any], factor: float) -> None:
    scaling = to_config(msgspec.structs.replace(LLAMA31, **changes), 128256)["rope_scaling"]
    assert scaling == {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }


@pytest.mark.parametrize(
    ("params", "changes", "longest"),
    [
        (LLAMA2, {}, 4096),
        (LLAMA2, {"norm_eps": 1e-6}, 2048),
        (LLAMA2, {"rope_theta": 10000.0}, 4096),
        (LLAMA2, {"rope_theta": 1e6}, 16384),
        (LLAMA2, {"rope_theta": 5e5}, 8192),
        (LLAMA31, {}, 131072),
        (LLAMA31, {"max_seq_len": 512}, 512),
        (MISTRAL, {}, 32768),
        (MISTRAL, {"vocab_size": 131072}, 131072),
        (MISTRAL, {"max_position_embeddings": 40000}, 40000),
    ],
)
def test_the_longest_context_is_stated_or_that_of_the_known_model(
    params: Params, changes: dict[str, Any], longest: int
) -> None:
    assert context_len(msgspec.structs.replace(params, **changes)) == longest
