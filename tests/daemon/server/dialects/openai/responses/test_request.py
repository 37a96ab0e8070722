from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmd.api.errors import RequestError
from llmd.chat.answers.thinking import effort_budget
from llmd.requests.fields import RequestFields
from llmd.server.dialects.openai.responses.request import ResponsesRequest, read_input, read_request
from tests.serving.garbage import garbage


def read(earlier: list[Any] | None = None, **fields: Any) -> ResponsesRequest:
    return read_request(RequestFields({"input": "Hi", **fields}), earlier or [])


def test_instructions_come_first_and_earlier_items_before_new_ones() -> None:
    earlier = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    asked = read(earlier, instructions="Be short.")
    assert [message["content"] for message in asked.question.prompt.messages] == ["Be short.", "a", "b", "Hi"]
    assert asked.question.items == [*earlier, {"type": "message", "role": "user", "content": "Hi"}]


def test_an_answer_that_the_client_began_is_continued() -> None:
    items = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "Well"}]
    prompt = read(input=items).question.prompt
    assert (prompt.add_generation_prompt, prompt.continue_final_message) == (False, True)
    assert not read(input=items).template.at_text_start
    prompt = read().question.prompt
    assert (prompt.add_generation_prompt, prompt.continue_final_message) == (True, False)


def test_effort_bounds_the_reasoning() -> None:
    assert read(reasoning={"effort": "low"}).question.prompt.reasoning_budget == effort_budget("low")
    assert read().question.prompt.reasoning_budget is None


def test_sampling_and_end_are_those_of_the_request() -> None:
    template = read(temperature=0.5, top_p=0.9, max_output_tokens=7, top_logprobs=2, seed=3).template
    assert (template.sampling.temperature, template.sampling.top_p, template.sampling.seed) == (0.5, 0.9, 3)
    assert (template.end.max_tokens, template.sampling.logprobs) == (7, 2)


def test_the_response_repeats_what_it_was_asked() -> None:
    echo = read(
        frequency_penalty=0.5,
        instructions="x",
        max_output_tokens=7,
        max_tool_calls=3,
        metadata={"a": "b"},
        presence_penalty=-1,
        prompt_cache_key="k",
        reasoning={"effort": "low"},
        safety_identifier="u",
        store=True,
        truncation="auto",
    ).echo
    assert echo == {
        "frequency_penalty": 0.5,
        "instructions": "x",
        "max_output_tokens": 7,
        "max_tool_calls": 3,
        "metadata": {"a": "b"},
        "parallel_tool_calls": True,
        "presence_penalty": -1.0,
        "previous_response_id": None,
        "prompt_cache_key": "k",
        "reasoning": {"effort": "low", "summary": None},
        "safety_identifier": "u",
        "store": True,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "truncation": "auto",
    }


def test_what_is_skipped_or_ignored_is_said() -> None:
    items = [{"role": "user", "content": "a"}, {"type": "web_search_call"}]
    asked = read(
        input=items, tools=[{"type": "web_search"}], text={"verbosity": "low"}, reasoning={"mode": "pro"}
    )
    assert asked.question.ignored == ("input[1].web_search_call", "tools[0].web_search", "reasoning.mode")
    assert asked.ignored == (*asked.question.ignored, "text.verbosity")


@pytest.mark.parametrize(
    "fields",
    [
        {"background": True},
        {"conversation": "conv_1"},
        {"prompt": {"id": "pmpt_1"}},
        {"moderation": {"model": "x"}},
        {"use_beam_search": True},
    ],
    ids=str,
)
def test_what_would_change_the_answer_is_refused_by_name(fields: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as caught:
        read(**fields)
    assert caught.value.param == next(iter(fields))


@given(
    field=st.sampled_from(
        [
            "input",
            "tools",
            "tool_choice",
            "text",
            "reasoning",
            "include",
            "metadata",
            "safety_identifier",
            "instructions",
            "truncation",
        ]
    ),
    value=garbage,
)
def test_garbage_is_refused_and_never_a_failure(field: str, value: Any) -> None:
    with contextlib.suppress(RequestError):
        read(**{field: value})


def test_a_question_alone_leaves_the_rest_unread() -> None:
    fields = RequestFields({"input": "Hi", "max_output_tokens": 7})
    assert read_input(fields, []).prompt.messages == [{"role": "user", "content": "Hi"}]
    assert fields.ignored == ("max_output_tokens",)
