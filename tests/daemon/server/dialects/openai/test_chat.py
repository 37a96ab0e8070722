from __future__ import annotations

import threading
from typing import Any

import pytest

from llmd.chat.model_text import ChatPrompt, ModelText
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.openai.chat import REFUSED_IN_CHAT, read_prompt, read_variables
from llmd.server.dialects.openai.fields import REFUSED
from llmd.server.dialects.openai.tools import ToolUse
from tests.serving.http import Reply, chat, send
from tests.serving.model import CONTEXT_LEN, TURN_END
from tests.serving.running import MODEL, RunningDaemon

USER = {"role": "user", "content": "Hello"}
OPEN = [USER, {"role": "assistant", "content": "Well"}]
OTHER_VALUES: dict[str, Any] = {
    "truncate_prompt_tokens": 5,
    "audio": {"voice": "x"},
    "modalities": ["text", "audio"],
    "web_search_options": {"a": 1},
    "moderation": {"a": 1},
    "documents": [{"text": "x"}],
    "chat_template": "{{ x }}",
    "echo": True,
    "add_special_tokens": True,
}
TOOLS = [{"type": "function", "function": {"name": "f"}}]
NEUTRAL_VALUES: dict[str, Any] = {
    "presence_penalty": 0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
    "logit_bias": {},
    "response_format": {"type": "text"},
    "modalities": ["text"],
    "tools": [],
    "tool_choice": "auto",
    "functions": [],
    "logprobs": None,
    "top_logprobs": 0,
    "typical_p": 1,
    "top_n_sigma": -1,
    "dynatemp_range": 0,
    "xtc_probability": 0,
    "mirostat": 0,
    "dry_multiplier": 0,
    "dry_sequence_breakers": ["x"],
    "repeat_penalty": 1,
    "repeat_last_n": 64,
    "bad_words": [],
    "allowed_token_ids": [],
    "include_stop_str_in_output": False,
    "prompt_logprobs": False,
    "n": 1,
    "seed": None,
    "echo": False,
    "stream_options": None,
}


def same(first: Reply, second: Reply) -> bool:
    return bool(first.json["choices"][0]["message"] == second.json["choices"][0]["message"])


def test_answer_has_every_field_that_clients_read(daemon: RunningDaemon) -> None:
    reply = chat(daemon)
    body = reply.json
    assert reply.status == 200
    assert body["id"].startswith("chatcmpl-")
    assert (body["object"], body["model"], body["service_tier"]) == ("chat.completion", MODEL, "default")
    (choice,) = body["choices"]
    assert choice["index"] == 0
    assert choice["finish_reason"] == "length"
    assert choice["logprobs"] is None
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["refusal"] is None
    assert "tool_calls" not in choice["message"]
    prompt_tokens = len("<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n") - len(
        "<|im_start|>" * 2
    )
    assert body["usage"]["completion_tokens"] == 8
    assert body["usage"]["prompt_tokens"] == prompt_tokens - len("<|im_end|>") + 1 + 3
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + 8


def test_same_seed_gives_the_same_answer_and_another_seed_another(daemon: RunningDaemon) -> None:
    sampled = {"temperature": 1.0, "max_tokens": 20}
    assert same(chat(daemon, seed=7, **sampled), chat(daemon, seed=7, **sampled))
    assert same(chat(daemon, seed=7, **sampled), chat(daemon, seed=7 + (1 << 64), **sampled))
    assert not same(chat(daemon, seed=7, **sampled), chat(daemon, seed=8, **sampled))
    assert not same(chat(daemon, **sampled), chat(daemon, **sampled))


@pytest.mark.parametrize("field", [{"top_k": 1}, {"top_p": 1e-9}, {"min_p": 1.0}])
def test_each_truncation_alone_makes_sampling_greedy(daemon: RunningDaemon, field: dict[str, float]) -> None:
    assert same(chat(daemon, temperature=1.5, **field), chat(daemon, temperature=0))


def test_a_bias_forbids_or_forces_a_token(daemon: RunningDaemon) -> None:
    def ids(**fields: Any) -> list[int]:
        choice = chat(daemon, temperature=0, max_tokens=12, return_token_ids=True, **fields).json["choices"][
            0
        ]
        found: list[int] = choice["token_ids"]
        return found

    free = ids()
    assert free[0] not in ids(logit_bias={str(free[0]): -100})
    assert set(ids(logit_bias={"65": 100})) == {65}


def test_penalties_keep_an_answer_from_repeating_itself(daemon: RunningDaemon) -> None:
    def different(**fields: Any) -> int:
        fields |= {"temperature": 0, "max_tokens": 40, "return_token_ids": True, "logit_bias": {"65": 3}}
        return len(set(chat(daemon, **fields).json["choices"][0]["token_ids"]))

    free = different()
    assert different(frequency_penalty=2.0) > free
    assert different(presence_penalty=2.0) > free
    assert different(repetition_penalty=50.0) > free


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ({"repetition_penalty": 0}, "above 0"),
        ({"frequency_penalty": 3}, "between -2.0 and 2.0"),
        ({"logit_bias": {"five": 1}}, "by token id"),
        ({"logit_bias": {"5": 200}}, "between -100.0 and 100.0"),
        ({"logit_bias": {"5": "much"}}, "a number"),
        ({"logit_bias": [5]}, "an object"),
        ({"logit_bias": {"1000000": 1}}, "but the vocabulary ends"),
        ({"allowed_token_ids": [1000000]}, "but the vocabulary ends"),
        ({"bad_words": [""]}, "not empty"),
        ({"dry_base": 0.5}, "between 1.0"),
        ({"dry_sequence_breakers": [""]}, "1 to 40 characters"),
        ({"mirostat": 3}, "between 0 and 2"),
        ({"samplers": ["top_k", "magic"]}, "penalties, dry, temperature"),
        ({"samplers": ["top_k", "dry"]}, "before all other samplers"),
    ],
    ids=str,
)
def test_edits_out_of_range_are_refused_by_name(
    daemon: RunningDaemon, field: dict[str, Any], expected: str
) -> None:
    reply = chat(daemon, **field)
    assert reply.status == 400
    assert expected in reply.error["message"]
    assert reply.error["param"].startswith(next(iter(field)))


def test_usage_counts_what_was_cached(daemon: RunningDaemon) -> None:
    question = "What is the longest river? " * 4
    details = [chat(daemon, question).json["usage"]["prompt_tokens_details"] for _ in range(2)]
    assert details[1]["cached_tokens"] >= 64


def test_choices_are_drawn_apart_and_the_first_is_that_of_a_single_one(daemon: RunningDaemon) -> None:
    sampled = {"temperature": 1.0, "max_tokens": 20, "seed": 7}
    one, three = chat(daemon, **sampled).json, chat(daemon, n=3, **sampled).json
    assert [choice["index"] for choice in three["choices"]] == [0, 1, 2]
    assert three["choices"][0]["message"] == one["choices"][0]["message"]
    assert len({choice["message"]["content"] for choice in three["choices"]}) == 3
    assert three["usage"]["completion_tokens"] == 60


def test_newer_name_of_the_token_limit_wins_and_zero_answers_nothing(daemon: RunningDaemon) -> None:
    assert chat(daemon, max_tokens=5, max_completion_tokens=3).json["usage"]["completion_tokens"] == 3
    nothing = chat(daemon, max_tokens=0).json
    assert nothing["choices"][0]["message"]["content"] == ""
    assert nothing["choices"][0]["finish_reason"] == "length"
    assert nothing["usage"]["completion_tokens"] == 0


def test_stop_string_ends_the_answer_before_it(daemon: RunningDaemon) -> None:
    whole = chat(daemon, max_tokens=24).json["choices"][0]["message"]["content"]
    stop = whole[5:8]
    reply = chat(daemon, max_tokens=24, stop=[stop, "never"]).json
    assert reply["choices"][0]["message"]["content"] == whole[: whole.index(stop)]
    assert reply["choices"][0]["finish_reason"] == "stop"
    assert reply["usage"]["completion_tokens"] < 24


def test_stop_tokens_end_the_answer_and_minimum_lengths_outlast_them(daemon: RunningDaemon) -> None:
    ids = chat(daemon, return_token_ids=True, max_tokens=12).json["choices"][0]["token_ids"]
    reply = chat(daemon, return_token_ids=True, max_tokens=12, stop_token_ids=[ids[4]]).json
    assert reply["choices"][0]["token_ids"] == ids[: ids.index(ids[4]) + 1]
    assert reply["choices"][0]["finish_reason"] == "stop"
    longer = chat(daemon, max_tokens=12, stop_token_ids=[ids[4]], min_tokens=10).json
    assert longer["usage"]["completion_tokens"] >= 10


def test_token_ids_are_returned_as_vllm_does(daemon: RunningDaemon) -> None:
    body = chat(daemon, return_token_ids=True).json
    assert bytes(i for i in body["prompt_token_ids"] if i < 256) == b"user\nHello\nassistant\n"
    assert len(body["prompt_token_ids"]) == body["usage"]["prompt_tokens"]
    assert len(body["choices"][0]["token_ids"]) == body["usage"]["completion_tokens"]
    assert "token_ids" not in chat(daemon).json["choices"][0]


def test_a_conversation_is_scored_as_vllm_does(daemon: RunningDaemon) -> None:
    body = chat(daemon, prompt_logprobs=1, return_token_ids=True, n=2).json
    assert len(body["prompt_logprobs"]) == len(body["prompt_token_ids"])
    assert body["prompt_logprobs"][0] is None
    for token, entries in zip(body["prompt_token_ids"][1:], body["prompt_logprobs"][1:], strict=True):
        assert str(token) in entries
    assert "prompt_logprobs" not in chat(daemon, prompt_logprobs=False).json


def test_answer_that_the_client_began_is_continued(daemon: RunningDaemon) -> None:
    by_default = chat(daemon, messages=OPEN, return_token_ids=True).json
    assert bytes(by_default["prompt_token_ids"][-4:]) == b"Well"
    explicit = chat(daemon, messages=OPEN, add_generation_prompt=False, continue_final_message=True)
    assert explicit.json["choices"][0]["message"] == by_default["choices"][0]["message"]
    new_turn = chat(daemon, messages=OPEN, add_generation_prompt=True, return_token_ids=True).json
    assert bytes(new_turn["prompt_token_ids"][-10:]) == b"assistant\n"
    closed = chat(daemon, messages=[USER], add_generation_prompt=False, return_token_ids=True).json
    assert closed["prompt_token_ids"][-2:] == [TURN_END, ord("\n")]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "Hello"}, "messages"),
        ({"messages": ["Hello"]}, "messages[0]"),
        ({"messages": [USER, {"role": "wizard", "content": "x"}]}, "messages[1].role"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [USER], "continue_final_message": True}, "continue_final_message"),
        (
            {"messages": OPEN, "continue_final_message": True, "add_generation_prompt": True},
            "continue_final_message",
        ),
        ({"messages": [USER], "chat_template_kwargs": 5}, "chat_template_kwargs"),
        ({"messages": [USER], "reasoning_effort": "huge"}, "reasoning_effort"),
    ],
)
def test_malformed_conversations_are_refused_by_name(body: dict[str, Any], param: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        read_prompt(RequestFields(body), ToolUse())
    assert caught.value.param == param


def test_images_are_refused_by_the_place_they_stand_in(daemon: RunningDaemon) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    text = {"type": "text", "text": "What is this?"}
    reply = chat(daemon, messages=[{"role": "user", "content": [text, image]}])
    assert reply.status == 400
    assert reply.error["param"] == "messages[0].content[1]"


@pytest.mark.parametrize("role", ["system", "user", "tool"])
def test_a_line_break_stands_between_parts_of_text(role: str, daemon: RunningDaemon) -> None:
    parts = [{"type": "text", "text": text} for text in ("What is", "the best?")]
    contents: list[Any] = [parts, "What is\nthe best?"]
    rendered = [
        send(daemon, "POST", "/apply-template", {"messages": [{"role": role, "content": content}]}).json
        for content in contents
    ]
    assert rendered[0] == rendered[1]
    assert "What is\nthe best?" in rendered[0]["prompt"]


def test_reasoning_effort_is_a_variable_of_the_template_and_none_turns_thinking_off() -> None:
    assert read_variables(RequestFields({"reasoning_effort": "low"})) == {"reasoning_effort": "low"}
    off = read_variables(RequestFields({"reasoning_effort": "none", "chat_template_kwargs": {"a": 1}}))
    assert off == {"reasoning_effort": "none", "enable_thinking": False, "a": 1}


def test_every_refused_field_is_tried_below() -> None:
    assert OTHER_VALUES.keys() == {*REFUSED, *REFUSED_IN_CHAT}


@pytest.mark.parametrize("name", sorted(OTHER_VALUES))
def test_fields_that_would_change_the_answer_are_refused_by_name(daemon: RunningDaemon, name: str) -> None:
    reply = chat(daemon, **{name: OTHER_VALUES[name]})
    assert reply.status == 400
    assert reply.error["param"] == name
    assert reply.error["code"] == "unsupported_parameter"


def test_fields_that_change_nothing_are_accepted_in_silence(daemon: RunningDaemon) -> None:
    reply = chat(daemon, **NEUTRAL_VALUES)
    assert reply.status == 200
    assert "x-llmd-ignored" not in reply.headers
    assert same(reply, chat(daemon))


def test_tools_that_must_not_be_called_are_left_out(daemon: RunningDaemon) -> None:
    reply = chat(daemon, tools=TOOLS, tool_choice="none")
    assert reply.status == 200
    assert same(reply, chat(daemon))


def test_tools_that_may_be_called_are_told_to_the_model(daemon: RunningDaemon) -> None:
    plain, with_tools = chat(daemon), chat(daemon, tools=TOOLS)
    assert with_tools.json["usage"]["prompt_tokens"] > plain.json["usage"]["prompt_tokens"]
    assert with_tools.json["choices"][0]["message"]["content"] is not None


def test_reasoning_format_is_one_of_three(daemon: RunningDaemon) -> None:
    assert same(chat(daemon, reasoning_format="none"), chat(daemon, reasoning_format="auto"))
    reply = chat(daemon, reasoning_format="loud")
    assert (reply.status, reply.error["param"]) == (400, "reasoning_format")


def test_what_only_tunes_and_what_is_unknown_is_named_in_a_header(daemon: RunningDaemon) -> None:
    reply = chat(daemon, user="me", store=True, service_tier="auto", **{"odd\nname": 1})
    assert reply.status == 200
    assert reply.headers["x-llmd-ignored"] == "odd%0Aname, service_tier, store, user"
    streamed = chat(daemon, stream=True, stream_options={"include_obfuscation": False})
    assert streamed.headers["x-llmd-ignored"] == "stream_options.include_obfuscation"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", 2.1),
        ("top_p", 0),
        ("top_p", 1.1),
        ("min_p", -0.1),
        ("top_k", -2),
        ("n", 0),
        ("n", 17),
        ("top_logprobs", 21),
        ("max_tokens", -1),
        ("stop", ["a"] * 17),
        ("stop", [""]),
        ("stop_token_ids", ["a"]),
    ],
)
def test_values_out_of_range_are_refused_by_name(daemon: RunningDaemon, field: str, value: Any) -> None:
    reply = chat(daemon, logprobs=True, **{field: value})
    assert reply.status == 400
    assert reply.error["param"] == field


def test_prompt_longer_than_the_window_is_refused_before_a_stream_begins(daemon: RunningDaemon) -> None:
    reply = chat(daemon, "x" * CONTEXT_LEN, stream=True)
    assert reply.status == 400
    assert reply.error["code"] == "context_length_exceeded"
    assert reply.error["n_ctx"] == CONTEXT_LEN
    assert reply.error["n_prompt_tokens"] > CONTEXT_LEN
    assert reply.error["param"] == "messages"


def test_window_reached_while_answering_is_a_length(daemon: RunningDaemon) -> None:
    body = chat(daemon, "x" * (CONTEXT_LEN - 40), max_tokens=10_000, ignore_eos=True).json
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["total_tokens"] == CONTEXT_LEN


def test_model_is_answered_under_the_name_that_was_asked_for(daemon: RunningDaemon) -> None:
    for asked in ("gpt-4o", f"{MODEL}:latest", "tin"):
        reply = chat(daemon, model=asked)
        assert reply.json["model"] == asked
        assert reply.headers["x-llmd-model"] == MODEL
    unknown = chat(daemon, model="tinny")
    assert unknown.status == 404
    assert unknown.error["code"] == "model_not_found"
    assert MODEL in unknown.error["message"]


def test_model_of_the_store_is_loaded_when_it_is_first_asked_for(daemon: RunningDaemon) -> None:
    assert chat(daemon, model="other").status == 200
    assert not same(chat(daemon, model="other"), chat(daemon))
    assert send(daemon, "POST", "/llmd/stop", {"model": "other"}).status == 200


def test_prompts_are_rendered_and_tokenized_off_the_event_loop(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def noting_encode(self: ModelText, prompt: ChatPrompt) -> tuple[int, ...]:
        threads.append(threading.current_thread())
        return encode_chat(self, prompt)

    encode_chat = ModelText.encode_chat
    with monkeypatch.context() as patch:
        patch.setattr(ModelText, "encode_chat", noting_encode)
        assert chat(daemon, "x" * 5000).error["code"] == "context_length_exceeded"
    (thread,) = threads
    assert thread is not daemon.thread
    assert thread.name.startswith("text")
