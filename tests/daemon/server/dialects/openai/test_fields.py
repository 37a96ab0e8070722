from __future__ import annotations

from typing import Any

import pytest

from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.openai.fields import (
    REFUSED,
    read_chat_logprobs,
    read_choices,
    read_max_tokens,
    refuse,
)


def test_what_is_absent_is_left_to_the_model() -> None:
    assert read_choices(RequestFields({})) == 1
    assert read_max_tokens(RequestFields({})) is None
    assert read_chat_logprobs(RequestFields({})) is None


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
