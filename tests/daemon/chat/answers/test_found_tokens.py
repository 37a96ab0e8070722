from __future__ import annotations

from llmd.api.results import Hypothesis, Logprobs, TokenOutput
from llmd.chat.answers.found_tokens import found_tokens


def test_the_last_token_says_why_the_answer_ended() -> None:
    found = Hypothesis((5, 6), "stop", -1.0)
    assert list(found_tokens(9, found)) == [TokenOutput(9, 5), TokenOutput(9, 6, "stop")]


def test_each_token_has_its_logprobs() -> None:
    logprobs = (Logprobs(-0.5, (), ()), Logprobs(-0.25, (7,), (-0.1,)))
    found = Hypothesis((5, 6), "length", -1.0, logprobs)
    assert [token.logprobs for token in found_tokens(9, found)] == list(logprobs)
