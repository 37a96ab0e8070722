"""Options are checked where they are set, and each means something to the daemon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmd.cli.serve import command as serve
from tests.bindings.building import Probe
from tests.bindings.scripted_server import http, scripted
from tests.bindings.tables import CALLS, DAEMON_OPTIONS, REQUEST_OPTIONS
from tests.serving.http import send
from tests.serving.running import EMBEDDER, MODEL, RunningDaemon

OK, BAD_ARGUMENT = 0, 2
EXAMPLES: dict[str, Any] = {
    "extra_body": {"logprobs": None},
    "model": MODEL,
    "chat_template_kwargs": {"x": 1},
    "dimensions": 4,
    "frequency_penalty": 0.5,
    "ignore_eos": True,
    "keep_alive": "10m",
    "max_tokens": 3,
    "min_p": 0.1,
    "min_tokens": 1,
    "presence_penalty": 0.5,
    "prompt_name": "query",
    "reasoning_effort": "low",
    "repetition_penalty": 1.1,
    "response_format": {"type": "json_object"},
    "seed": 7,
    "stop": ["END"],
    "structured_outputs": {"choice": ["yes", "no"]},
    "temperature": 0.7,
    "tool_choice": "auto",
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "top_k": 5,
    "top_p": 0.9,
    "typical_p": 0.9,
}
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (
        "/v1/chat/completions",
        {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1},
    ),
    "complete": ("/v1/completions", {"model": MODEL, "prompt": "Hi", "max_tokens": 1}),
    "embed": ("/v1/embeddings", {"model": EMBEDDER, "input": "Hi"}),
    "tokens": ("/tokenize", {"model": MODEL, "content": "Hi"}),
}
WITH_CALL = [(name, call) for name, (_, calls) in REQUEST_OPTIONS.items() for call in CALLS if call in calls]


def test_every_option_is_tried() -> None:
    assert EXAMPLES.keys() == REQUEST_OPTIONS.keys()
    assert len(WITH_CALL) > 30


@pytest.mark.parametrize(("name", "call"), WITH_CALL)
def test_the_daemon_reads_every_option(name: str, call: str, daemon: RunningDaemon) -> None:
    path, body = BODIES[call]
    value: Any = EMBEDDER if (name, call) == ("model", "embed") else EXAMPLES[name]
    fields: dict[str, Any] = value if name == "extra_body" else {name: value}
    reply = send(daemon, "POST", path, body | fields)
    if name == "prompt_name":
        # The tiny model has no such prompt: that it is missed shows that the field was read.
        assert (reply.status, "query" in reply.error["message"]) == (400, True)
        return
    assert reply.status == 200, reply.content
    assert name not in (reply.headers["x-llmd-ignored"] or "").split(", ")


def test_every_option_is_sent_as_it_was_set(probe: Probe, tmp_path: Path) -> None:
    calls = ["set", "address", f"unix:{tmp_path}/scripted.sock", "connect", "new"]
    for name, value in EXAMPLES.items():
        text = "END" if name == "stop" else value if isinstance(value, str) else json.dumps(value)
        calls += ["option", name, text]
    replies = ([http(b'{"data":[]}')] for _ in range(4))
    with scripted(tmp_path, *replies) as server:
        probe.run(*calls, "chat", "complete", "x", "embed", "x", "tokenize", "x")
    assert len(server.requests) == len(CALLS)
    for call, request in zip(CALLS, server.requests, strict=True):
        sent = json.loads(request.partition(b"\r\n\r\n")[2])
        expected = {name: EXAMPLES[name] for name, (_, calls) in REQUEST_OPTIONS.items() if call in calls}
        expected |= expected.pop("extra_body")
        assert {name: value for name, value in sent.items() if name in expected} == expected
        assert not sent.keys() & (EXAMPLES.keys() - expected.keys())


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("temprature", "temperature"),
        ("max_token", "max_tokens"),
        ("topp", "top_p"),
        ("Temperature", "temperature"),
        ("", "stop"),
        ("x" * 500, "top_p"),
        ("tool_chioce", "tool_choice"),
    ],
)
def test_an_unknown_option_names_the_nearest(name: str, nearest: str, probe: Probe, address: str) -> None:
    step = probe.ask(address, "option", name, "1")
    assert step["status"] == BAD_ARGUMENT
    assert step["message"].startswith("there is no option ")
    assert name == "" or len(name) > 100 or step["message"].endswith(f"the nearest is {nearest}")
    assert step["hint"] == "docs/c-api.md lists all options"


def test_an_unknown_option_of_a_daemon_names_the_nearest(probe: Probe) -> None:
    step = probe.last("set", "apikey", "1")
    assert (step["status"], step["message"]) == (
        BAD_ARGUMENT,
        'there is no option "apikey"; the nearest is api_key',
    )


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("max_tokens", "1.5", "a whole number"),
        ("max_tokens", "1e3", "a whole number"),
        ("max_tokens", "many", "a whole number"),
        ("max_tokens", "", "a whole number"),
        ("temperature", "0,7", "a number such as 0.7"),
        ("temperature", ".7", "a number such as 0.7"),
        ("temperature", "nan", "a number such as 0.7"),
        ("temperature", '0, "x": 1', "a number such as 0.7"),
        ("ignore_eos", "yes", "true or false"),
        ("ignore_eos", "null", "true or false"),
        ("response_format", "{", "JSON"),
        ("response_format", '{"a": 1} {', "JSON"),
        ("tools", "f()", "JSON"),
        ("extra_body", "[1]", "a JSON object"),
        ("extra_body", '{"a": 1', "a JSON object"),
        ("tool_choice", "{auto}", "a JSON object"),
    ],
)
def test_a_value_of_the_wrong_form_is_refused(
    name: str, value: str, expected: str, probe: Probe, address: str
) -> None:
    step = probe.ask(address, "option", name, value)
    assert step["status"] == BAD_ARGUMENT
    assert step["message"] == f"the value of the option {name} must be {expected}"


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "99999999999", "5s"])
def test_a_timeout_is_a_number_of_milliseconds(value: str, probe: Probe) -> None:
    step = probe.last("set", "silence_timeout_ms", value)
    assert (step["status"], "whole number of milliseconds above 0" in step["message"]) == (BAD_ARGUMENT, True)


def test_an_option_is_set_back_to_its_default(probe: Probe, address: str) -> None:
    calls = ("option", "model", MODEL, "message", "user", "Hi", "option", "max_tokens", "2")
    step = probe.ask(address, *calls, "option", "temperature", "99", "reset", "temperature", "chat")
    assert step["status"] == OK


def test_options_of_a_private_daemon_are_flags_of_serve() -> None:
    flags = {flag for parameter in serve.params for flag in parameter.opts}
    names = {name for name, kind in DAEMON_OPTIONS.items() if kind == "SERVE"}
    assert {f"--{name.replace('_', '-')}" for name in names} <= flags
    assert len(names) >= 12
