from __future__ import annotations

import math

import pytest

from llmd.chat.answers.answer_text import Alternative, AnswerToken
from llmd.chat.model_text import ModelText
from llmd.server.dialects.llamacpp.probabilities import probability_entries

TOKEN = AnswerToken(97, 0, math.log(0.25), (Alternative(98, math.log(0.75)), Alternative(97, math.log(0.25))))


def test_entries_have_ids_and_logprobs(text: ModelText) -> None:
    (entry,) = probability_entries(text.tokenizer, [TOKEN], final=False)
    assert entry == {
        "id": 97,
        "token": "a",
        "bytes": [97],
        "logprob": math.log(0.25),
        "top_logprobs": [
            {"id": 98, "token": "b", "bytes": [98], "logprob": math.log(0.75)},
            {"id": 97, "token": "a", "bytes": [97], "logprob": math.log(0.25)},
        ],
    }


def test_final_entries_have_probabilities_in_their_place(text: ModelText) -> None:
    (entry,) = probability_entries(text.tokenizer, [TOKEN], final=True)
    assert entry == {
        "id": 97,
        "token": "a",
        "bytes": [97],
        "prob": pytest.approx(0.25),
        "top_probs": [
            {"id": 98, "token": "b", "bytes": [98], "prob": pytest.approx(0.75)},
            {"id": 97, "token": "a", "bytes": [97], "prob": pytest.approx(0.25)},
        ],
    }
