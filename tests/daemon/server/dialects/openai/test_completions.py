from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.openai.completions import REFUSED_IN_COMPLETIONS, read_prompts
from tests.serving.http import complete
from tests.serving.model import CONTEXT_LEN, TURN_END, write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon


def text_of(body: dict[str, Any], index: int = 0) -> str:
    text: str = body["choices"][index]["text"]
    return text


def test_answer_has_every_field_that_clients_read(daemon: RunningDaemon) -> None:
    body = complete(daemon).json
    assert body["id"].startswith("cmpl-")
    assert body["object"] == "text_completion"
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["choices"][0]["logprobs"] is None
    assert body["usage"]["prompt_tokens"] == len("Hello")
    assert body["usage"]["completion_tokens"] == 8


def test_sixteen_tokens_unless_the_request_says_otherwise(daemon: RunningDaemon) -> None:
    assert complete(daemon, max_tokens=None).json["usage"]["completion_tokens"] == 16


@pytest.mark.parametrize(
    ("prompt", "read"),
    [
        ("Hi", ("Hi",)),
        (None, ("",)),
        ([], ("",)),
        (["Hi", "Ho"], ("Hi", "Ho")),
        ([72, 105], ((72, 105),)),
        ([[72, 105], [72]], ((72, 105), (72,))),
        (["Hi", [72]], ("Hi", (72,))),
    ],
)
def test_prompts_come_in_every_form(prompt: Any, read: Any) -> None:
    assert read_prompts(RequestFields({"prompt": prompt})) == read


@pytest.mark.parametrize(
    "prompt", [5, 0, False, {}, {"a": 1}, [1, "a"], [[]], [[-1]], [None], [True], ["x"] * 257]
)
def test_what_is_no_prompt_is_refused(prompt: Any) -> None:
    with pytest.raises(BadRequestError) as caught:
        read_prompts(RequestFields({"prompt": prompt}))
    assert caught.value.param == "prompt"


def test_choices_are_ordered_by_prompt_then_by_number(daemon: RunningDaemon) -> None:
    sampled = {"temperature": 1.0, "seed": 3}
    body = complete(daemon, ["Hello", [*b"Good"]], n=2, **sampled).json
    alone = [complete(daemon, prompt, n=2, **sampled).json for prompt in ("Hello", "Good")]
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2, 3]
    expected = [text_of(one, index) for one in alone for index in (0, 1)]
    assert [choice["text"] for choice in body["choices"]] == expected
    assert body["usage"]["prompt_tokens"] == len("Hello") + len("Good")


def test_echo_writes_the_prompt_first_whole_and_streamed(daemon: RunningDaemon) -> None:
    plain = text_of(complete(daemon).json)
    assert text_of(complete(daemon, echo=True).json) == "Hello" + plain
    assert text_of(complete(daemon, [*b"Hello"], echo=True).json) == "Hello" + plain
    chunks = complete(daemon, echo=True, stream=True).chunks
    assert "".join(text_of(chunk) for chunk in chunks) == "Hello" + plain
    assert text_of(complete(daemon, echo=True, max_tokens=0).json) == "Hello"


def test_echo_with_logprobs_scores_the_prompt(daemon: RunningDaemon) -> None:
    scored = complete(daemon, echo=True, logprobs=2, max_tokens=4).json["choices"][0]
    lists = scored["logprobs"]
    assert len({len(values) for values in lists.values()}) == 1
    assert scored["text"].startswith("Hello")
    assert lists["tokens"][:5] == list("Hello")
    assert lists["text_offset"][:6] == [0, 1, 2, 3, 4, 5]
    assert lists["token_logprobs"][0] is lists["top_logprobs"][0] is None
    answered = complete(daemon, logprobs=2, max_tokens=4).json["choices"][0]["logprobs"]
    assert lists["token_logprobs"][-4:] == pytest.approx(answered["token_logprobs"])
    for logprob, top in zip(lists["token_logprobs"][1:], lists["top_logprobs"][1:], strict=True):
        assert 1 <= len(top) <= 2
        assert logprob <= max(top.values()) + 1e-6


def test_a_prompt_with_a_suffix_is_not_scored(daemon: RunningDaemon) -> None:
    reply = complete(daemon, "def f(", suffix="):", echo=True, logprobs=1)
    assert (reply.status, reply.error["param"]) == (400, "echo")


def test_a_prompt_is_scored_alone_as_evaluations_do(daemon: RunningDaemon) -> None:
    ids = [*b"The quick brown fox jumps over the lazy dog. " * 9]
    scored = complete(daemon, ids, echo=True, logprobs=1, max_tokens=0).json
    lists = scored["choices"][0]["logprobs"]
    assert scored["usage"]["completion_tokens"] == 0
    assert scored["choices"][0]["finish_reason"] == "length"
    assert len(lists["tokens"]) == len(ids)
    # Compare with the same tokens, each generated as the only token allowed.
    for place in (1, 2, 100, 255, 256, 300, len(ids) - 1):
        forced = complete(daemon, ids[:place], logprobs=0, max_tokens=1, allowed_token_ids=[ids[place]]).json[
            "choices"
        ][0]["logprobs"]["token_logprobs"]
        assert lists["token_logprobs"][place] == pytest.approx(forced[0], abs=1e-5)
    again = complete(daemon, ids, echo=True, logprobs=1, max_tokens=0).json
    assert again["choices"] == scored["choices"]
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


def test_a_prompt_that_fills_the_window_is_scored(daemon: RunningDaemon) -> None:
    ids = [65, *b"ab" * (CONTEXT_LEN // 2)][:CONTEXT_LEN]
    lists = complete(daemon, ids, echo=True, logprobs=0, max_tokens=0).json["choices"][0]["logprobs"]
    assert len(lists["token_logprobs"]) == CONTEXT_LEN
    single = complete(daemon, [65], echo=True, logprobs=0, max_tokens=0).json["choices"][0]["logprobs"]
    assert (single["tokens"], single["token_logprobs"]) == (["A"], [None])


def test_streamed_echo_begins_with_the_scores_of_the_prompt(daemon: RunningDaemon) -> None:
    fields = {"echo": True, "logprobs": 1, "max_tokens": 5, "n": 2, "temperature": 0}
    whole = complete(daemon, **fields).json["choices"]
    chunks = [chunk["choices"][0] for chunk in complete(daemon, stream=True, **fields).chunks]
    for choice in whole:
        parts = [
            chunk["logprobs"] for chunk in chunks if chunk["index"] == choice["index"] and chunk["logprobs"]
        ]
        for name, values in choice["logprobs"].items():
            assert [value for part in parts for value in part[name]] == values


def test_prompt_logprobs_are_in_vllms_form(daemon: RunningDaemon) -> None:
    choice = complete(daemon, prompt_logprobs=2, max_tokens=2).json["choices"][0]
    scores = choice["prompt_logprobs"]
    assert choice["logprobs"] is None
    assert scores[0] is None
    assert {entry["rank"] for entry in scores[1].values()} >= {1, 2}
    for token, entries in zip(b"ello", scores[1:], strict=True):
        assert entries[str(token)]["decoded_token"] == chr(token)
        assert len(entries) in (2, 3)
    assert complete(daemon, prompt_logprobs=2, stream=True).error["param"] == "prompt_logprobs"
    assert "prompt_logprobs" not in complete(daemon, max_tokens=2).json["choices"][0]


def test_token_ids_of_prompt_and_answer_stand_in_each_choice(daemon: RunningDaemon) -> None:
    (choice,) = complete(daemon, return_token_ids=True).json["choices"]
    assert choice["prompt_token_ids"] == [*b"Hello"]
    assert len(choice["token_ids"]) == 8
    chunks = complete(daemon, return_token_ids=True, stream=True).chunks
    assert chunks[0]["choices"][0]["prompt_token_ids"] == [*b"Hello"]
    assert not any("prompt_token_ids" in chunk["choices"][0] for chunk in chunks[1:])
    assert [i for chunk in chunks for i in chunk["choices"][0]["token_ids"]] == choice["token_ids"]


def test_tokens_outside_the_vocabulary_are_refused(daemon: RunningDaemon) -> None:
    reply = complete(daemon, [5, 100_000])
    assert (reply.status, reply.error["param"]) == (400, "prompt")
    assert "100000" in reply.error["message"]


def test_prompt_without_tokens_is_refused(daemon: RunningDaemon) -> None:
    reply = complete(daemon, "")
    assert (reply.status, reply.error["param"]) == (400, "prompt")


def test_special_tokens_of_the_prompt_count_as_such(daemon: RunningDaemon) -> None:
    (choice,) = complete(daemon, "a<|im_end|>", return_token_ids=True).json["choices"]
    assert choice["prompt_token_ids"] == [ord("a"), TURN_END]


def test_prompt_longer_than_the_window_is_refused(daemon: RunningDaemon) -> None:
    reply = complete(daemon, "x" * CONTEXT_LEN)
    assert (reply.status, reply.error["code"]) == (400, "context_length_exceeded")
    assert (reply.error["n_prompt_tokens"], reply.error["n_ctx"]) == (CONTEXT_LEN, CONTEXT_LEN)
    assert reply.error["param"] == "prompt"


@pytest.mark.parametrize(
    ("name", "value"),
    [("best_of", 5), ("add_special_tokens", False), ("prompt_embeds", "AA==")],
)
def test_fields_that_would_change_the_answer_are_refused_by_name(
    daemon: RunningDaemon, name: str, value: Any
) -> None:
    assert name == "best_of" or name in REFUSED_IN_COMPLETIONS
    reply = complete(daemon, **{name: value})
    assert (reply.status, reply.error["param"]) == (400, name)


def test_best_of_what_is_returned_changes_nothing(daemon: RunningDaemon) -> None:
    assert complete(daemon, n=2, best_of=2).status == 200


@pytest.mark.parametrize(("field", "value"), [("logprobs", 21), ("logprobs", -1), ("max_tokens", -1)])
def test_values_out_of_range_are_refused_by_name(daemon: RunningDaemon, field: str, value: int) -> None:
    reply = complete(daemon, **{field: value})
    assert (reply.status, reply.error["param"]) == (400, field)


def test_special_tokens_of_the_answer_are_shown_only_on_request(daemon: RunningDaemon) -> None:
    fields = {"max_tokens": 300, "ignore_eos": True, "temperature": 2, "seed": 1, "return_token_ids": True}
    shown = complete(daemon, **fields, skip_special_tokens=False).json["choices"][0]
    hidden = complete(daemon, **fields).json["choices"][0]
    assert shown["token_ids"] == hidden["token_ids"]
    assert any(token > 255 for token in shown["token_ids"])
    assert "<|im_start|>" in shown["text"]
    assert "<|im_start|>" not in hidden["text"]


def test_suffix_is_filled_up_to_where_the_model_has_tokens_for_it(
    tmp_path: Path, probes: Path, daemon: RunningDaemon
) -> None:
    directories = directories_below(tmp_path, cache=probes)
    markers = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
    write_model(directories.models / MODEL, extra_specials=markers)
    with running_daemon(directories) as coder:
        body = complete(coder, ["def f(", "def g("], suffix="):", return_token_ids=True).json
        assert body["usage"]["prompt_tokens"] == 2 * (len(b"def f(" + b"):") + 3)
        refused = complete(coder, [72, 73], suffix="):")
        assert (refused.status, refused.error["param"]) == (400, "prompt")
    refused = complete(daemon, "def f(", suffix="):")
    assert (refused.status, refused.error["param"]) == (400, "suffix")
