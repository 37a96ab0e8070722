from __future__ import annotations

from typing import Any

import pytest

from llmd_tui.daemon.access import Event
from llmd_tui.state.daemon_state import DaemonState
from llmd_tui.text_report import TextReport, begun, device_sentence, finished, opening
from tests.tui.scripted_daemon import model, request

CPU = {"name": "cpu", "ok": True, "description": "AMD EPYC", "memory_bytes": 16 << 30}
CUDA = {"name": "cuda:0", "ok": False, "reason": "no\x1b driver", "fix": "install one"}


class Told:
    """A state that follows events, and the report about it."""

    def __init__(self, *models: dict[str, Any]) -> None:
        self.state = DaemonState()
        self.now = 0.0
        self.send("snapshot", version="0.1.0", models=models, requests=(), processes={})
        self.report = TextReport(self.state)

    def send(self, kind: str, **fields: Any) -> None:
        self.state.apply(Event(kind, 1, fields), self.now)

    def lines(self, status: str = "connected", reason: str = "") -> list[str]:
        self.now += 1.0
        return self.report.changes(self.state, status, reason, self.now)  # type: ignore[arg-type]


def test_the_state_is_told_in_sentences() -> None:
    told = Told(model("guide", verdicts=[{"text": "on the CPU because there is no GPU", "level": "warn"}]))
    told.send("request", **request("r1"))
    told.send("request", **request("r2", state="waiting", waiting_for="slots"))
    told.send("model", model="other", phase="loading", step="weights", done=1, total=2)
    lines = list(opening("unix:/llmd.sock", told.state, [CPU, CUDA]))
    assert lines == [
        "llmd 0.1.0 at unix:/llmd.sock.",
        "The device cpu can be used: AMD EPYC, with 16.0 GiB of memory.",
        "The device cuda:0 is not used: no driver. Fix: install one.",
        "The model guide is loaded.",
        "The model other is loading.",
        "guide: on the CPU because there is no GPU",
        "Request r1 to guide is running.",
        "Request r2 to guide is waiting for a free slot.",
        "What changes is written from here on. Ctrl-C ends this; the daemon goes on.",
    ]


def test_what_is_not_known_is_said() -> None:
    lines = list(opening("x", DaemonState(), [], "no right to manage"))
    assert "The devices are not known: no right to manage." in lines
    assert "No model is loaded." in lines
    assert (
        device_sentence({"plugin": "odd", "ok": False}) == "The device odd is not used: no reason is given."
    )


def test_requests_are_told_when_they_begin_and_end() -> None:
    told = Told(model())
    assert told.lines() == []
    told.send("request", **request("r1", phase="begin"))
    assert told.lines() == ["Request r1 to guide began with 20 prompt tokens: /v1/chat/completions."]
    told.send("request", **request("r1"))
    assert told.lines() == []
    told.send("request", **request("r1", phase="end", completion_tokens=57, ttft_ms=31.0, finish="stop"))
    assert told.lines() == [
        "Request r1 ended (stop) after 1.5 s: 20 tokens read, 57 written, the first after 31 ms, then 38 per second."
    ]
    assert told.lines() == []


def test_a_short_request_is_told_with_both_ends() -> None:
    told = Told(model())
    told.send("request", **request("r1", phase="begin"))
    told.send("request", **request("r1", phase="end", status=400, error="too long"))
    assert told.lines() == [
        "Request r1 to guide began with 20 prompt tokens: /v1/chat/completions.",
        "Request r1 failed with 400: too long.",
    ]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"cached_tokens": 15}, "20 tokens read, 15 of them from the cache, 0 written"),
        ({"model": "", "prompt_tokens": 0}, "0 tokens read, 0 written"),
    ],
)
def test_figures_are_left_out_if_there_are_none(fields: dict[str, Any], sentence: str) -> None:
    told = Told()
    told.send("request", **request("r1", phase="end", **fields))
    (ended,) = told.state.ended
    assert finished(ended) == f"Request r1 ended after 1.5 s: {sentence}."
    assert begun(ended).startswith("Request r1 to")


def test_models_are_told_when_their_state_changes() -> None:
    told = Told()
    told.send("model", model="x", phase="loading", step="weights", done=1, total=2)
    assert told.lines() == ["The model x is loading."]
    told.send("report", models=[model("x")], processes={})
    assert told.lines() == ["The model x is loaded."]
    told.send("model", model="x", phase="failed", reason="out of memory")
    told.send("report", models=[model("x", "failed")], processes={})
    assert told.lines() == ["The model x is failed: out of memory."]
    told.send("report", models=[], processes={})
    assert told.lines() == ["The model x is unloaded."]


def test_verdicts_are_told_when_they_come_and_go() -> None:
    told = Told(model())
    told.send("report", models=[model(verdicts=[{"text": "3 requests wait for KV blocks"}])], processes={})
    assert told.lines() == ["guide: 3 requests wait for KV blocks"]
    told.send("report", models=[model(verdicts=[{"text": "12 requests wait for KV blocks"}])], processes={})
    assert told.lines() == []  # only its number changed
    told.send("report", models=[model()], processes={})
    assert told.lines() == ["No longer so: guide: 12 requests wait for KV blocks"]


def test_a_lost_daemon_is_told_once_and_its_return_too() -> None:
    told = Told(model())
    assert told.lines("lost", "it is gone") == ["The daemon is lost: it is gone. Connecting again."]
    assert told.lines("lost", "still gone") == []
    assert told.lines() == ["The daemon is back."]
