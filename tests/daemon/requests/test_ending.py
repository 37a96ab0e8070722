from __future__ import annotations

from llmd.api.messages import StopParams
from llmd.requests.ending import EndChoice, read_end
from llmd.requests.fields import RequestFields


def test_end_has_strings_ids_and_lengths() -> None:
    body = {"stop": "x", "stop_token_ids": [5], "ignore_eos": True, "min_tokens": 3}
    assert read_end(RequestFields(body), 9) == EndChoice(9, 3, ("x",), (5,), ignore_eos=True)


def test_what_is_absent_is_left_to_the_model() -> None:
    assert read_end(RequestFields({}), None) == EndChoice()


def test_an_engine_is_told_of_the_models_own_ends_unless_these_are_ignored() -> None:
    assert EndChoice(9, 3, (), (7, 2)).stop_params(20, (5, 2)) == StopParams(9, (2, 5, 7), 3)
    assert EndChoice(token_ids=(7,), ignore_eos=True).stop_params(20, (5,)) == StopParams(20, (7,))
    assert EndChoice(99).stop_params(20, (5,)) == StopParams(20, (5,))
