from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serving.http import Reply, complete, send
from tests.serving.model import CONTEXT_LEN, write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

MARKERS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")


@pytest.fixture(scope="module")
def coder(tmp_path_factory: pytest.TempPathFactory, probes: Path) -> Iterator[RunningDaemon]:
    """A model that supports fill-in-the-middle."""
    directories = directories_below(tmp_path_factory.mktemp("coder"), cache=probes)
    write_model(directories.models / MODEL, extra_specials=MARKERS)
    with running_daemon(directories) as running:
        yield running


def ask(daemon: RunningDaemon, prompt: Any = "Hello", /, **fields: Any) -> Reply:
    body = {"model": MODEL, "prompt": prompt, "n_predict": 8, "temperature": 0}
    return send(daemon, "POST", "/completion", {**body, **fields})


def test_answer_has_every_field_that_clients_read(daemon: RunningDaemon) -> None:
    body = ask(daemon).json
    assert body["content"] == complete(daemon).json["choices"][0]["text"]
    assert (body["stop"], body["stop_type"], body["stopping_word"]) == (True, "limit", "")
    assert (body["tokens_evaluated"], body["tokens_predicted"], body["truncated"]) == (5, 8, False)
    assert (body["model"], body["prompt"], body["tokens"]) == (MODEL, "Hello", [])
    assert body["generation_settings"]["temperature"] == 0
    assert body["generation_settings"]["n_predict"] == 8
    timings = body["timings"]
    assert timings["cache_n"] + timings["prompt_n"] == 5
    assert timings["predicted_n"] == 8
    assert timings["predicted_per_second"] == pytest.approx(8 / timings["predicted_ms"] * 1e3)


def test_prompt_that_is_known_is_not_computed_again(daemon: RunningDaemon) -> None:
    prompt = "a prompt of more than two blocks of tokens, twice"
    assert ask(daemon, prompt).json["timings"]["cache_n"] in {0, 32, 48}
    timings = ask(daemon, prompt).json["timings"]
    assert timings["cache_n"] >= 32
    assert timings["cache_n"] + timings["prompt_n"] == len(prompt)


def test_stream_ends_with_an_event_that_has_the_figures(daemon: RunningDaemon) -> None:
    reply = ask(daemon, stream=True)
    *said, last = reply.chunks
    whole = ask(daemon, return_tokens=True).json
    assert "".join(chunk["content"] for chunk in said) == whole["content"]
    assert [i for chunk in said for i in chunk["tokens"]] == whole["tokens"]
    assert all(chunk["stop"] is False for chunk in said)
    assert [chunk["tokens_predicted"] for chunk in said] == sorted(c["tokens_predicted"] for c in said)
    assert (last["stop"], last["content"], last["tokens_predicted"]) == (True, "", 8)
    assert {"timings", "generation_settings", "stop_type"} <= set(last)
    assert "[DONE]" not in reply.content.decode()


def test_stream_ends_with_the_settings_of_a_whole_answer(daemon: RunningDaemon) -> None:
    whole = ask(daemon, seed=3, top_k=7).json["generation_settings"]
    last = ask(daemon, seed=3, top_k=7, stream=True).chunks[-1]["generation_settings"]
    assert (whole["seed"], whole["top_k"], whole["n_predict"], whole["stream"]) == (3, 7, 8, False)
    assert last == whole | {"stream": True}


def test_answer_that_fills_the_window_is_truncated(daemon: RunningDaemon) -> None:
    prompt = [97] * (CONTEXT_LEN - 4)
    for n_predict, truncated in ((3, False), (-1, True), (9, True)):
        body = ask(daemon, prompt, n_predict=n_predict, ignore_eos=True).json
        assert (body["stop_type"], body["truncated"]) == ("limit", truncated)
        streamed = ask(daemon, prompt, n_predict=n_predict, ignore_eos=True, stream=True).chunks[-1]
        assert streamed["truncated"] is truncated
    assert body["tokens_predicted"] == 4


def test_response_fields_choose_what_is_answered(daemon: RunningDaemon) -> None:
    wanted = ["content", "generation_settings/n_predict", "prompt", "nothing"]
    body = ask(daemon, response_fields=wanted).json
    assert set(body) == {"content", "generation_settings/n_predict", "prompt"}
    assert (body["generation_settings/n_predict"], body["prompt"]) == (8, "Hello")
    *said, last = ask(daemon, response_fields=wanted, stream=True).chunks
    assert "".join(chunk["content"] for chunk in said) == body["content"]
    assert last == body | {"content": ""}
    assert ask(daemon, response_fields=5).status == 400


def test_stop_word_is_told(daemon: RunningDaemon) -> None:
    text = ask(daemon).json["content"]
    body = ask(daemon, stop=[text[3:5]]).json
    assert (body["stop_type"], body["stopping_word"]) == ("word", text[3:5])
    assert body["content"] == text[: text.index(text[3:5])]


def test_end_of_text_is_told_unless_it_is_ignored(daemon: RunningDaemon) -> None:
    free = {"temperature": 1, "top_k": 0, "top_p": 1, "min_p": 0, "seed": 7, "n_predict": 400}
    prompt = send(
        daemon,
        "POST",
        "/apply-template",
        {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}]},
    ).json["prompt"]
    body = ask(daemon, prompt, **free).json
    assert body["stop_type"] == "eos"
    ignoring = ask(daemon, prompt, ignore_eos=True, **free).json
    assert ignoring["tokens_predicted"] > body["tokens_predicted"]


def test_several_prompts_have_an_answer_each(daemon: RunningDaemon) -> None:
    answers = ask(daemon, ["Hello", [*b"Good"], "Hello"]).json
    assert [answer["index"] for answer in answers] == [0, 1, 2]
    assert answers[0]["content"] == answers[2]["content"] == ask(daemon).json["content"]
    assert answers[1]["content"] == ask(daemon, "Good").json["content"]
    assert ask(daemon, [*b"He", "llo"]).json["content"] == answers[0]["content"]


def test_prompt_may_be_an_object(daemon: RunningDaemon) -> None:
    content = ask(daemon).json["content"]
    assert ask(daemon, {"prompt_string": "Hello"}).json["content"] == content
    answers = ask(daemon, ["Good", {"prompt_string": "Hello"}]).json
    assert [answer["prompt"] for answer in answers] == ["Good", "Hello"]
    assert answers[1]["content"] == content
    refused = ask(daemon, {"prompt_string": "Hello", "multimodal_data": ["AA=="]})
    assert (refused.status, refused.error["param"]) == (400, "prompt")


def test_probabilities_come_with_ids(daemon: RunningDaemon) -> None:
    entries = ask(daemon, n_probs=2).json["completion_probabilities"]
    assert len(entries) == 8
    assert entries[0]["id"] == entries[0]["top_logprobs"][0]["id"]
    assert set(entries[0]["top_logprobs"][1]) == {"id", "token", "bytes", "logprob"}
    streamed = [
        e
        for chunk in ask(daemon, n_probs=2, stream=True).chunks
        for e in chunk.get("completion_probabilities", ())
    ]
    assert streamed == entries


def test_probabilities_after_sampling_are_those_of_what_was_drawn_from(daemon: RunningDaemon) -> None:
    drawing: dict[str, Any] = {
        "temperature": 1.5,
        "top_k": 3,
        "top_p": 1,
        "min_p": 0,
        "seed": 5,
        "n_probs": 10,
    }
    body = ask(daemon, post_sampling_probs=True, return_tokens=True, **drawing).json
    before = ask(daemon, return_tokens=True, **drawing).json
    assert body["tokens"] == before["tokens"]
    for entry, raw in zip(body["completion_probabilities"], before["completion_probabilities"], strict=True):
        assert set(entry) == {"id", "token", "bytes", "prob", "top_probs"}
        best = raw["top_logprobs"][:3]
        assert [other["id"] for other in entry["top_probs"]] == [other["id"] for other in best]
        weights = [math.exp(other["logprob"] / 1.5) for other in best]
        expected = [weight / sum(weights) for weight in weights]
        assert [other["prob"] for other in entry["top_probs"]] == pytest.approx(expected, rel=1e-3)
        assert entry["prob"] in [other["prob"] for other in entry["top_probs"]]


def test_greedy_answer_is_certain_after_sampling(daemon: RunningDaemon) -> None:
    reply = ask(daemon, n_probs=10, post_sampling_probs=True, stream=True)
    entries = [e for chunk in reply.chunks for e in chunk.get("completion_probabilities", ())]
    assert len(entries) == 8
    for entry in entries:
        assert entry["prob"] == 1.0
        assert [(other["id"], other["prob"]) for other in entry["top_probs"]] == [(entry["id"], 1.0)]


def test_bias_forbids_a_token(daemon: RunningDaemon) -> None:
    first = ask(daemon, n_predict=1, return_tokens=True).json["tokens"]
    other = ask(daemon, n_predict=1, return_tokens=True, logit_bias=[[first[0], False]]).json["tokens"]
    assert first != other


def test_grammar_binds_the_answer(daemon: RunningDaemon) -> None:
    body = ask(daemon, grammar='root ::= "yes" | "no"', n_predict=20).json
    assert body["content"] in {"yes", "no"}
    assert ask(daemon, json_schema={"enum": [True]}, n_predict=20).json["content"] == "true"
    refused = ask(daemon, grammar="root ::= nothing")
    assert refused.status == 400


def test_infill_writes_between_prefix_and_suffix(coder: RunningDaemon, daemon: RunningDaemon) -> None:
    fields = {"model": MODEL, "input_prefix": "def f(", "input_suffix": "):", "n_predict": 4}
    body = send(coder, "POST", "/infill", fields).json
    assert body["tokens_evaluated"] == len(b"def f(" + b"):") + 3
    begun = send(coder, "POST", "/infill", {**fields, "prompt": "a, "}).json
    assert begun["tokens_evaluated"] == body["tokens_evaluated"] + 3
    extra = [{"filename": "a.py", "text": "x = 1"}]
    more = send(coder, "POST", "/infill", {**fields, "input_extra": extra}).json
    assert "a.py\nx = 1" in more["prompt"]
    assert send(daemon, "POST", "/infill", fields).status == 400
    assert send(coder, "POST", "/infill", {**fields, "input_extra": "x"}).status == 400
