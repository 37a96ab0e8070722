from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from llmd.client_connection import connected
from tests.serving.engine_state import report, wait_until
from tests.serving.http import complete
from tests.serving.model import write_model
from tests.serving.ndjson import ask_chat, generate, lines_of
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

FIGURES = {
    "total_duration",
    "load_duration",
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
}
OWN_CONTEXT_LEN = 2048
"""More tokens than are decoded before the server notices a disconnect; few enough to fill within the test."""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, probes: Path) -> Iterator[RunningDaemon]:
    """A daemon that gets requests from one test only."""
    directories = directories_below(tmp_path_factory.mktemp("own"), cache=probes)
    write_model(directories.models / MODEL, context_len=OWN_CONTEXT_LEN)
    # Without a large buffer, an unread stream would be paused, which looks the same.
    with running_daemon(directories, buffer_tokens=1 << 20) as running:
        yield running


def test_stream_is_one_line_for_each_piece_and_the_last_has_the_figures(daemon: RunningDaemon) -> None:
    reply = ask_chat(daemon, stream=True)
    assert reply.headers["Content-Type"] == "application/x-ndjson"
    *said, last = lines_of(reply)
    assert all(set(line) == {"model", "created_at", "message", "done"} for line in said)
    assert all(line["done"] is False and line["model"] == MODEL for line in said)
    assert set(last) == {"model", "created_at", "message", "done", "done_reason"} | FIGURES
    assert (last["done"], last["done_reason"]) == (True, "length")
    assert last["message"] == {"role": "assistant", "content": ""}
    assert last["eval_count"] == 8
    durations = [last[name] for name in FIGURES if name.endswith("duration")]
    assert all(isinstance(value, int) for value in durations)
    assert max(durations) == last["total_duration"]
    assert last["eval_duration"] > 0
    assert last["prompt_eval_duration"] > 0


def test_whole_answer_is_the_stream_joined(daemon: RunningDaemon) -> None:
    whole = ask_chat(daemon, logprobs=True, top_logprobs=2)
    lines = lines_of(ask_chat(daemon, stream=True, logprobs=True, top_logprobs=2))
    assert whole.headers["Content-Type"].startswith("application/json")
    assert whole.json["message"]["content"] == "".join(line["message"]["content"] for line in lines)
    entries = [entry for line in lines for entry in line.get("logprobs", ())]
    assert whole.json["logprobs"] == entries
    assert set(entries[0]) == {"token", "logprob", "bytes", "top_logprobs"}
    assert len(entries) == 8
    assert [len(entry["top_logprobs"]) for entry in entries] == [2] * 8


def test_stop_string_ends_the_answer_before_it(daemon: RunningDaemon) -> None:
    text = generate(daemon, raw=True).json["response"]
    reply = generate(daemon, raw=True, options={"stop": [text[3:5]]}).json
    assert reply["response"] == text[: text.index(text[3:5])]
    assert reply["done_reason"] == "stop"


def test_text_is_that_of_the_other_dialects(daemon: RunningDaemon) -> None:
    assert generate(daemon, raw=True).json["response"] == complete(daemon).json["choices"][0]["text"]


def test_fields_that_nobody_read_are_named(daemon: RunningDaemon) -> None:
    reply = ask_chat(daemon, strange=1, options={"num_gpu": 99, "num_thread": 4})
    assert reply.headers["x-llmd-ignored"] == "strange, options.num_gpu, options.num_thread"


def test_failure_before_the_first_line_has_a_status_of_its_own(daemon: RunningDaemon) -> None:
    reply = ask_chat(daemon, stream=True, model="nobody")
    assert (reply.status, type(reply.json["error"])) == (404, str)
    long = generate(daemon, "x" * 600, stream=True)
    assert long.status == 400
    assert all(word in long.json["error"] for word in ("num_ctx", "512"))


@pytest.mark.parametrize("path", ["/api/generate", "/completion"])
def test_client_that_leaves_a_stream_frees_its_request(own: RunningDaemon, path: str) -> None:
    # An answer that cannot end before it fills the window, whichever of the two fields the route reads.
    endless = {"type": "string", "minLength": 100_000}
    body = {"model": MODEL, "prompt": "Hello", "stream": True, "format": endless, "json_schema": endless}
    before = report(own)["output_tokens"]
    with closing(HTTPConnection("localhost")) as connection:
        connection.sock = connected(own.tcp)
        connection.request("POST", path, json.dumps(body))
        connection.getresponse().readline()
    wait_until(own, running=0, waiting=0, kv_blocks_used=0)
    assert report(own)["output_tokens"] - before < OWN_CONTEXT_LEN // 2


def test_cut_prompt_is_said_in_header_and_last_line(daemon: RunningDaemon) -> None:
    reply = generate(daemon, "x" * 600, raw=True, truncate=True, stream=True)
    cut = lines_of(reply)[-1]["llmd"]["truncated_tokens"]
    assert reply.headers["x-llmd-truncated"] == str(cut)
    assert cut > 80
    assert "llmd" not in generate(daemon, truncate=True).json
