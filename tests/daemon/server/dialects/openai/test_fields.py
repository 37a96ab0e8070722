from __future__ import annotations

from typing import Any

import pytest

from llmd.chat.sampling_choice import SamplingChoice
from llmd.server.answering.generation import EndChoice
from llmd.server.dialects.openai.fields import (
    REFUSED,
    read_chat_logprobs,
    read_choices,
    read_end,
    read_max_tokens,
    read_sampling,
    refuse,
)
from llmd.server.errors import BadRequestError
from llmd.server.http.request_fields import RequestFields


def test_sampling_takes_numbers_however_they_are_written() -> None:
    body = {"temperature": "0.5", "top_k": 5.0, "top_p": "1", "min_p": 0, "seed": "7"}
    fields = RequestFields(body)
    assert read_sampling(fields, 2) == SamplingChoice(0.5, 5, 1.0, 0.0, 7, 2)
    assert fields.ignored == ()


def test_what_is_absent_is_left_to_the_model() -> None:
    assert read_sampling(RequestFields({}), None) == SamplingChoice()
    assert read_end(RequestFields({}), None) == EndChoice()
    assert read_choices(RequestFields({})) == 1
    assert read_max_tokens(RequestFields({})) is None
    assert read_chat_logprobs(RequestFields({})) is None


def test_top_k_of_minus_one_is_off() -> None:
    assert read_sampling(RequestFields({"top_k": -1}), None).top_k == 0


@pytest.mark.parametrize("seed", [-1, 1 << 63, 1 << 64, (1 << 64) + 5])
def test_seeds_beyond_64_bits_are_taken(seed: int) -> None:
    assert read_sampling(RequestFields({"seed": seed}), None).seed == seed


def test_end_has_strings_ids_and_lengths() -> None:
    body = {"stop": "x", "stop_token_ids": [5], "ignore_eos": True, "min_tokens": 3}
    assert read_end(RequestFields(body), 9) == EndChoice(9, 3, ("x",), (5,), ignore_eos=True)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"logprobs": True}, 0),
        ({"logprobs": True, "top_logprobs": 5}, 5),
        ({"logprobs": False, "top_logprobs": 0}, None),
        ({"logprobs": False}, None),
    ],
)
def test_logprobs_are_a_number_of_alternatives(body: dict[str, Any], expected: int | None) -> None:
    assert read_chat_logprobs(RequestFields(body)) == expected


def test_neutral_value_of_every_refused_field_passes() -> None:
    for name, (neutral, _) in REFUSED.items():
        for value in (*neutral, None, "", [], {}):
            refuse(RequestFields({name: value}), REFUSED)


def test_refusals_say_why() -> None:
    with pytest.raises(BadRequestError, match="prompts are never cut"):
        refuse(RequestFields({"truncate_prompt_tokens": 5}), REFUSED)


def test_llama_cpps_name_of_the_repetition_penalty_is_known() -> None:
    assert read_sampling(RequestFields({"repeat_penalty": 1.2}), None).repetition_penalty == 1.2
    both = RequestFields({"repeat_penalty": 1.2, "repetition_penalty": 1.1})
    assert read_sampling(both, None).repetition_penalty == 1.1
    assert both.ignored == ()
