from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serving.model import TURN_END, write_model
from tests.serving.ndjson import ask_chat, generate, lines_of
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

MARKERS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")


@pytest.fixture(scope="module")
def coder(tmp_path_factory: pytest.TempPathFactory, probes: Path) -> Iterator[RunningDaemon]:
    """A model that supports fill-in-the-middle."""
    directories = directories_below(tmp_path_factory.mktemp("coder"), cache=probes)
    write_model(directories.models / MODEL, extra_specials=MARKERS)
    with running_daemon(directories) as running:
        yield running


def test_prompt_is_a_users_message_behind_the_system_text(daemon: RunningDaemon) -> None:
    body = generate(daemon, system="Be brief.").json
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    chat = ask_chat(daemon, messages=messages).json
    assert body["response"] == chat["message"]["content"]
    assert body["prompt_eval_count"] == chat["prompt_eval_count"]


def test_raw_prompt_goes_to_the_model_as_it_is(daemon: RunningDaemon) -> None:
    body = generate(daemon, raw=True).json
    assert body["prompt_eval_count"] == len(b"Hello")
    assert "context" not in body
    assert generate(daemon, raw=True, system="Be brief.").status == 400


def test_context_is_prompt_and_answer_and_may_be_gone_on_from(daemon: RunningDaemon) -> None:
    first = generate(daemon).json
    assert len(first["context"]) == first["prompt_eval_count"] + first["eval_count"]
    last = lines_of(generate(daemon, stream=True))[-1]
    assert last["context"] == first["context"]
    alone = generate(daemon, "More").json
    second = generate(daemon, "More", context=first["context"]).json
    assert second["context"][: len(first["context"])] == first["context"]
    added = second["prompt_eval_count"] - len(first["context"])
    assert added == alone["prompt_eval_count"] - 1  # BOS is only at the start


def test_suffix_is_filled_up_to_where_the_model_knows_how(
    coder: RunningDaemon, daemon: RunningDaemon
) -> None:
    body = generate(coder, "def f(", suffix="):").json
    assert body["prompt_eval_count"] == len(b"def f(" + b"):") + 3
    assert "context" not in body
    refused = generate(daemon, "def f(", suffix="):")
    assert refused.status == 400
    assert "no fill-in-the-middle tokens" in refused.json["error"]


def test_prompt_that_may_be_cut_keeps_its_end_and_what_num_keep_says(daemon: RunningDaemon) -> None:
    prompt = "a" * 300 + "b" * 300
    options: dict[str, Any] = {"num_predict": 12}
    cut = generate(daemon, prompt, raw=True, truncate=True, options=options).json
    assert cut["prompt_eval_count"] == 500
    same = generate(daemon, prompt[-500:], raw=True, options=options).json
    assert cut["response"] == same["response"]
    kept = generate(daemon, prompt, raw=True, truncate=True, options={**options, "num_keep": 200}).json
    same = generate(daemon, "a" * 200 + "b" * 300, raw=True, options=options).json
    assert kept["response"] == same["response"]


def test_pictures_are_refused(daemon: RunningDaemon) -> None:
    reply = generate(daemon, images=["aGVsbG8="])
    assert (reply.status, "images" in reply.json["error"]) == (400, True)


def test_stop_token_ends_the_answer(daemon: RunningDaemon) -> None:
    body = generate(
        daemon, options={"num_predict": 400, "temperature": 1.0, "top_k": 0, "top_p": 1, "seed": 7}
    ).json
    assert body["done_reason"] == "stop"
    assert body["context"][-1] == TURN_END
