from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmd.chat.templates.render_messages import Failed, Rendered, RenderJob, pack
from llmd.chat.templates.template_process import TemplateProcess
from llmd.process.worker import WorkerLostError

MEMORY_BYTES = 512 << 20
ENDLESS = "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}"


@pytest.fixture
def process() -> Iterator[TemplateProcess]:
    process = TemplateProcess(memory_bytes=MEMORY_BYTES)
    yield process
    process.end()


def job(source: str) -> bytes:
    return pack(RenderJob(source, {"messages": []}, "2026-02-03T04:05:06"))


def test_renders_job_after_job(process: TemplateProcess) -> None:
    assert process.render(job("{{ 6 * 7 }}"), limit_s=20) == Rendered("42")
    assert isinstance(process.render(job("{{"), limit_s=20), Failed)
    assert process.is_alive


def test_answer_that_does_not_come_in_time_is_a_timeout(process: TemplateProcess) -> None:
    with pytest.raises(TimeoutError):
        process.render(job(ENDLESS), limit_s=0.1)


def test_answer_longer_than_a_frame_may_be_is_a_failure(process: TemplateProcess) -> None:
    reply = process.render(job("{{ 'x' * 70000000 }}"), limit_s=20)
    assert isinstance(reply, Failed)
    assert reply.kind == "memory"


def test_process_that_was_killed_is_lost(process: TemplateProcess) -> None:
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(WorkerLostError):
        process.render(job("x"), limit_s=20)


@pytest.mark.parametrize("program", ["false", "no-such-program"])
def test_process_that_cannot_start_is_lost(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", program)
    with pytest.raises(WorkerLostError):
        TemplateProcess(memory_bytes=MEMORY_BYTES)


def test_process_that_sends_what_is_no_answer_is_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    babbler = tmp_path / "babbler"
    babbler.write_text("#!/bin/sh\nprintf '\\000\\000\\000\\000\\001\\000\\000\\000x'\nsleep 9\n")
    babbler.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(babbler))
    process = TemplateProcess(memory_bytes=MEMORY_BYTES)
    with pytest.raises(WorkerLostError, match="not a reply"):
        process.render(job("x"), limit_s=20)
    process.end()


def test_process_has_none_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMD_API_KEY", "secret")
    process = TemplateProcess(memory_bytes=MEMORY_BYTES)
    environment = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\x00")
    process.end()
    assert [entry.partition(b"=")[0] for entry in environment if entry] == [b"PYTHONPATH"]


def test_ended_process_is_gone(process: TemplateProcess) -> None:
    process.end()
    assert not process.is_alive
    assert not Path(f"/proc/{process.pid}").exists()
