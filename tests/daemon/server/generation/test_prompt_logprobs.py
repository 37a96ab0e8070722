from __future__ import annotations

import pytest

from llmd.api.results import Logprobs
from llmd.chat.answers.answer_text import Alternative
from llmd.chat.model_text import ModelText
from llmd.server.generation.prompt_logprobs import prompt_entries, prompt_tokens
from tests.serving.model import BOS

SCORES = [Logprobs(-1.0, (97, 98), (-0.5, -1.5)), Logprobs(-0.25, (98, 99), (-0.25, -2.0))]


def test_offsets_are_those_of_the_repeated_text(text: ModelText) -> None:
    tokens = prompt_tokens(text.tokenizer, (BOS, *b"ab"), SCORES, 1, text_len=2)
    assert [token.start for token in tokens] == [0, 0, 1]
    assert [token.logprob for token in tokens] == [None, -1.0, -0.25]
    assert tokens[1].top == (Alternative(97, -0.5),)
    shown = prompt_tokens(text.tokenizer, (BOS, *b"ab"), SCORES, 0, text_len=len("<s>ab"))
    assert [token.start for token in shown] == [0, 3, 4]


def test_half_characters_have_the_place_of_the_whole(text: ModelText) -> None:
    euro = tuple("x€".encode())
    tokens = prompt_tokens(text.tokenizer, euro, [SCORES[0]] * 3, 0, text_len=2)
    assert [token.start for token in tokens] == [0, 1, 1, 1]


def test_entries_have_the_most_likely_and_the_prompts_own(text: ModelText) -> None:
    first, second, third = prompt_entries(text.tokenizer, (BOS, *b"zb"), SCORES, 2)
    assert first is None
    assert second == {
        "97": {"logprob": -0.5, "rank": 1, "decoded_token": "a"},
        "98": {"logprob": -1.5, "rank": 2, "decoded_token": "b"},
        "122": {"logprob": -1.0, "rank": None, "decoded_token": "z"},
    }
    assert third is not None
    assert list(third) == ["98", "99"]


def test_what_cannot_happen_is_a_number_that_json_has(text: ModelText) -> None:
    (_, entry) = prompt_entries(text.tokenizer, (BOS, 97), [Logprobs(float("-inf"), (), ())], 0)
    assert entry is not None
    assert entry["97"]["logprob"] == pytest.approx(-9999.0)
