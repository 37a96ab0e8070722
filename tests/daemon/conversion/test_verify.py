"""Each difference between the source and the written model is reported in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from llmd.api import ModelPlan
from llmd.api.errors import TokenizerError, UnsupportedModelError
from llmd.chat.tokenizers.gguf.gguf_tokenizer import load_gguf_tokenizer
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from llmd.conversion.output_plan import rotating
from llmd.conversion.verify import check_same_plan, check_same_text
from tests.daemon.chat.tokenizers.gguf.metadata import bytes_and_merges, scored_pieces
from tests.daemon.conversion.test_tensor_map import plan

METASPACE = Path(__file__).parents[2] / "golden/tokenizers/metaspace_json"


def changed(name: str, **fields: Any) -> tuple[ModelPlan, ModelPlan]:
    return plan(name), plan(name, **fields)


@pytest.mark.parametrize(
    ("plans", "what"),
    [
        (changed("mistral-window", sliding_window=None), "layer 0: window is 11 and would become None"),
        (
            changed("llama-f16", hidden_act="gelu"),
            "layer 0 ffn glu activation is 'silu' and would become 'gelu'",
        ),
        (changed("llama-f16", rms_norm_eps=2e-5), "layer 0 mixer norm eps is 0.001 and would become 2e-05"),
        (changed("llama-f16", rope_theta=9e3), "inv_freq is"),
        (changed("llama-f16", attention_bias=True), "mixer linear biases is None and would become TensorRef"),
        (changed("llama-f16", max_position_embeddings=99), "context_len is 128 and would become 99"),
        ((plan("llama-f16"), rotating(plan("llama-f16"), interleaved=True)), "interleaved is False"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_first_difference_of_two_plans_is_told(plans: tuple[ModelPlan, ModelPlan], what: str) -> None:
    with pytest.raises(UnsupportedModelError, match=what) as refused:
        check_same_plan(*plans, "a GGUF file")
    assert refused.value.message.startswith("a GGUF file cannot express all of this model: ")


def test_what_float32_rounds_off_is_no_difference() -> None:
    check_same_plan(*changed("llama-f16", rms_norm_eps=1e-3 * (1 + 1e-8)), "a file")
    first = plan("llama-f16")
    check_same_plan(first, msgspec.structs.replace(first, architecture="another"), "a file")


@pytest.mark.parametrize("make", [bytes_and_merges, scored_pieces])
def test_a_tokenizer_that_cuts_otherwise_is_found_by_its_own_tokens(make: Callable[..., Any]) -> None:
    merges = ("ŀ ŀ",) if make is bytes_and_merges else ("qq", "q")
    first, second = (load_gguf_tokenizer(make(*more), "f") for more in (merges, ("a b",)))
    check_same_text(first, first, "a file")
    with pytest.raises(TokenizerError, match="would split text differently in a file: "):
        check_same_text(first, second, "a file")


def test_a_space_at_the_start_is_looked_at() -> None:
    """Metaspace adds no second space before a leading one; SentencePiece does."""
    from llmd.chat.tokenizers.gguf.vocabulary_keys import vocabulary_keys

    source = load_tokenizer(METASPACE)
    written = load_gguf_tokenizer(vocabulary_keys(source, source.vocab_size), "m.gguf")
    with pytest.raises(TokenizerError, match="would split text differently"):
        check_same_text(source, written, "a GGUF file")
