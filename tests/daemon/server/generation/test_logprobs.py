from __future__ import annotations

import math

from llmd.chat.answers.answer_text import Alternative, AnswerToken
from llmd.chat.model_text import ModelText
from llmd.server.generation.logprobs import LEAST_LOGPROB, finite, logprob_entries


def test_entries_have_the_bytes_of_half_characters_too(text: ModelText) -> None:
    token = AnswerToken(0xE2, 0, -0.5, (Alternative(ord("a"), -0.25), Alternative(0xE2, -math.inf)))
    (entry,) = logprob_entries(text.tokenizer, [token])
    assert entry["bytes"] == [0xE2]
    assert entry["token"] == "\ufffd"
    assert entry["logprob"] == -0.5
    assert entry["top_logprobs"][0] == {"token": "a", "logprob": -0.25, "bytes": [97]}
    assert entry["top_logprobs"][1]["logprob"] == LEAST_LOGPROB


def test_what_cannot_happen_has_a_number_that_json_can_hold() -> None:
    assert finite(-math.inf) == finite(None) == LEAST_LOGPROB
    assert finite(-1.5) == -1.5
