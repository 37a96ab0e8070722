"""Beam search over HTTP, with vLLM's field names."""

from __future__ import annotations

import re
from typing import Any

import pytest

from llmd.api.messages import BeamParams
from llmd.requests.beams import read_beams, unused_by
from llmd.requests.fields import BadRequestError, RequestFields
from tests.serving.http import chat, complete
from tests.serving.running import RunningDaemon

BEAMS: dict[str, Any] = {"use_beam_search": True, "n": 3}


@pytest.mark.parametrize(
    ("body", "n", "expected"),
    [
        ({}, 3, None),
        ({"use_beam_search": False, "length_penalty": "much"}, 3, None),
        ({"use_beam_search": True}, 3, BeamParams(3, 3)),
        ({"use_beam_search": "true", "best_of": 4, "length_penalty": -1}, 2, BeamParams(4, 2, -1.0)),
        ({"use_beam_search": True, "early_stopping": True}, 1, BeamParams(1, 1, 1.0, early_stopping=True)),
        ({"use_beam_search": True, "early_stopping": "never"}, 1, BeamParams(1, 1, 1.0, "never")),
    ],
    ids=str,
)
def test_fields_are_those_of_vllm(body: dict[str, Any], n: int, expected: BeamParams | None) -> None:
    assert read_beams(RequestFields(body), n) == expected


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"best_of": 2}, "between 3 and 16"),
        ({"best_of": 17}, "between 3 and 16"),
        ({"length_penalty": 11}, "between -10.0 and 10.0"),
        ({"early_stopping": "soon"}, 'true, false or "never"'),
        ({"early_stopping": [1]}, 'true, false or "never"'),
    ],
    ids=str,
)
def test_values_out_of_range_are_refused_by_name(field: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequestError, match=message) as caught:
        read_beams(RequestFields({"use_beam_search": True, **field}), 3)
    assert caught.value.param == next(iter(field))


def test_what_narrows_draws_is_named_unless_it_narrows_nothing() -> None:
    neutral = {"temperature": 0, "top_p": "1.0", "top_k": -1, "min_p": 0.0, "seed": 5}
    assert unused_by(BeamParams(2), RequestFields(neutral)) == ()
    narrowing = {"temperature": 0.7, "top_p": 0.9, "mirostat": 2}
    assert unused_by(BeamParams(2), RequestFields(narrowing)) == ("temperature", "top_p", "mirostat")
    assert unused_by(None, RequestFields(narrowing)) == ()


def scores(body: dict[str, Any], penalty: float = 1.0) -> list[float]:
    told = [choice["logprobs"]["token_logprobs"] for choice in body["choices"]]
    return [sum(logprobs) / len(logprobs) ** penalty for logprobs in told]


@pytest.mark.parametrize("penalty", [0.0, 1.0, 2.0])
def test_the_likeliest_answers_come_first(daemon: RunningDaemon, penalty: float) -> None:
    fields = {**BEAMS, "best_of": 4, "length_penalty": penalty, "max_tokens": 12, "return_token_ids": True}
    body = complete(daemon, **fields, logprobs=0).json
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]
    assert len({tuple(choice["token_ids"]) for choice in body["choices"]}) == 3
    assert scores(body, penalty) == sorted(scores(body, penalty), reverse=True)
    assert body["usage"]["completion_tokens"] == sum(
        len(choice["logprobs"]["tokens"]) for choice in body["choices"]
    )
    greedy = complete(daemon, logprobs=0, max_tokens=12).json
    assert scores(body, penalty)[0] >= scores(greedy, penalty)[0]


def test_more_beams_than_answers_may_find_better_ones(daemon: RunningDaemon) -> None:
    def best(width: int) -> float:
        fields = {"use_beam_search": True, "best_of": width, "ignore_eos": True}
        return scores(complete(daemon, **fields, logprobs=0, max_tokens=24).json)[0]

    assert best(4) > best(1)


def test_a_search_gives_the_same_answers_again_whatever_the_seed(daemon: RunningDaemon) -> None:
    first, second = (complete(daemon, **BEAMS, seed=seed, temperature=1).json for seed in (1, 2))
    assert first["choices"] == second["choices"]


def test_answers_to_several_prompts_are_ordered_by_prompt(daemon: RunningDaemon) -> None:
    body = complete(daemon, ["Hello", "Good"], **BEAMS).json
    assert [choice["index"] for choice in body["choices"]] == [*range(6)]
    assert [one["text"] for one in body["choices"][3:]] == [
        one["text"] for one in complete(daemon, "Good", **BEAMS).json["choices"]
    ]


def test_streams_carry_the_same_answers_at_their_end(daemon: RunningDaemon) -> None:
    whole = chat(daemon, **BEAMS).json
    streamed = chat(daemon, **BEAMS, stream=True, stream_options={"include_usage": True})
    texts, finishes = ["", "", ""], ["", "", ""]
    for chunk in streamed.chunks:
        for choice in chunk["choices"]:
            texts[choice["index"]] += choice["delta"].get("content") or ""
            finishes[choice["index"]] = choice["finish_reason"] or finishes[choice["index"]]
    assert texts == [choice["message"]["content"] for choice in whole["choices"]]
    assert finishes == [choice["finish_reason"] for choice in whole["choices"]]
    assert streamed.chunks[-1]["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]


def test_every_answer_follows_what_was_asked(daemon: RunningDaemon) -> None:
    body = chat(daemon, **BEAMS, max_tokens=30, structured_outputs={"regex": "(ab|cd){2,4}[0-9]"}).json
    texts = [choice["message"]["content"] for choice in body["choices"]]
    assert len(set(texts)) == 3
    assert all(re.fullmatch("(ab|cd){2,4}[0-9]", text) for text in texts)
    two = chat(daemon, **BEAMS, max_tokens=30, structured_outputs={"choice": ["yes", "no"]}).json
    assert sorted(choice["message"]["content"] for choice in two["choices"]) == ["no", "yes"]


def test_a_stop_string_cuts_each_answer(daemon: RunningDaemon) -> None:
    free = complete(daemon, **BEAMS, max_tokens=20, ignore_eos=True).json
    stop = free["choices"][0]["text"][4:6]
    cut = complete(daemon, **BEAMS, max_tokens=20, ignore_eos=True, stop=stop).json
    for whole, short in zip(free["choices"], cut["choices"], strict=True):
        assert short["text"] == whole["text"].partition(stop)[0]
        assert (short["finish_reason"] == "stop") == (stop in whole["text"])
    assert cut["usage"]["completion_tokens"] < free["usage"]["completion_tokens"]


def test_what_a_search_does_not_use_is_named_in_the_header(daemon: RunningDaemon) -> None:
    reply = chat(daemon, **BEAMS, temperature=0.8, top_p=0.9, frequency_penalty=0.5)
    assert reply.headers["x-llmd-ignored"] == "temperature, top_p"
    assert chat(daemon, length_penalty=2.0).headers["x-llmd-ignored"] == "length_penalty"


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"prompt_logprobs": 1}, "prompt_logprobs", "cannot be combined with use_beam_search"),
        ({"echo": True, "logprobs": 1}, "echo", "cannot be combined with use_beam_search"),
        ({"best_of": 16}, None, "of 16 beams are requested"),
        ({"stop_token_ids": [*range(70)]}, None, "candidates"),
    ],
    ids=str,
)
def test_what_cannot_be_searched_is_refused(
    daemon: RunningDaemon, fields: dict[str, Any], param: str | None, message: str
) -> None:
    reply = complete(daemon, **BEAMS, **fields)
    assert (reply.status, reply.error["param"]) == (400, param)
    assert message in reply.error["message"]
    assert complete(daemon, **BEAMS).status == 200
