from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import CheckpointError, ConfigError, NotFoundError
from llmd.config import TcpAddress, UnixAddress
from llmd.config.keys import KeyFile
from llmd.server.daemon import Serving
from llmd.server.engines.supervisor import Supervisor
from tests.serving.http import chat, open_stream, send
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

LONG = {"max_tokens": 400, "ignore_eos": True}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_model(tmp_path / "data" / "models" / MODEL)
    return tmp_path


def events(content: bytes) -> list[str]:
    return [line.removeprefix("data: ") for line in content.decode().split("\n") if line.startswith("data: ")]


def test_says_in_one_line_where_it_listens(tmp_path: Path) -> None:
    serving = Serving("1.2", (UnixAddress(tmp_path / "s"), TcpAddress("::1", 5)), ("tiny", "gpt-4o"))
    assert str(serving) == f"llmd 1.2 listens on unix:{tmp_path}/s and http://[::1]:5; models: tiny, gpt-4o"
    assert str(Serving("1", (TcpAddress("::1", 5),), ())).endswith("models: none loaded")


def test_is_ready_only_once_its_models_are_loaded(home: Path, probes: Path) -> None:
    with running_daemon(directories_below(home, probes), aliases={"gpt-4o": MODEL}) as daemon:
        assert daemon.serving.models == (MODEL, "gpt-4o")
        assert send(daemon, "GET", "/ready").json["models"] == [MODEL]
        assert chat(daemon).status == 200
    assert not daemon.socket.exists()


@pytest.mark.parametrize(("name", "error"), [("nobody", NotFoundError), ("broken", CheckpointError)])
def test_model_that_cannot_be_loaded_ends_it_with_the_reason(
    tmp_path: Path, probes: Path, name: str, error: type[Exception]
) -> None:
    directories = directories_below(tmp_path, probes)
    (directories.models / "broken").mkdir(parents=True)
    (directories.models / "broken" / "config.json").write_text("{}")
    (directories.models / "broken" / "tokenizer.json").write_text(
        (write_model(tmp_path / "whole") / "tokenizer.json").read_text()
    )
    with pytest.raises(error), running_daemon(directories, models=[name]):
        pass
    assert not directories.user_socket.exists()


def test_second_daemon_at_the_same_place_is_refused(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, probes)
    with (
        running_daemon(directories, models=()) as daemon,
        pytest.raises(ConfigError, match="cannot listen"),
        running_daemon(directories, models=()),
    ):
        pass
    assert daemon.serving.addresses


def test_names_and_pages_that_were_allowed_may_ask(tmp_path: Path, probes: Path) -> None:
    allowed: dict[str, Any] = {
        "allow_host": ["box"],
        "allow_origin": ["https://*.example", "chrome-extension://*"],
    }
    with running_daemon(directories_below(tmp_path, probes), models=(), **allowed) as daemon:
        asked = {
            value: send(daemon, "GET", "/health", headers={header: value}).status
            for header, value in (
                ("Host", "box"),
                ("Host", "elsewhere"),
                ("Origin", "https://app.example"),
                ("Origin", "chrome-extension://abc"),
                ("Origin", "https://app.test"),
            )
        }
    assert asked == {
        "box": 200,
        "elsewhere": 403,
        "https://app.example": 200,
        "chrome-extension://abc": 200,
        "https://app.test": 403,
    }


def test_every_page_may_ask_where_that_was_allowed(tmp_path: Path, probes: Path) -> None:
    with running_daemon(directories_below(tmp_path, probes), models=(), allow_origin=["*"]) as daemon:
        for origin in ("https://evil.example", "null"):
            reply = send(daemon, "GET", "/health", headers={"Origin": origin})
            assert (reply.status, reply.headers["Access-Control-Allow-Origin"]) == (200, origin)
        assert send(daemon, "GET", "/health", headers={"Host": "evil.example"}).status == 403


def test_patterns_that_are_no_origins_are_refused_at_the_start(tmp_path: Path, probes: Path) -> None:
    with (
        pytest.raises(ConfigError, match=r"allow_origin from .* is 'app\.example': the scheme is missing"),
        running_daemon(directories_below(tmp_path, probes), models=(), allow_origin=["app.example"]),
    ):
        pass


def test_variables_that_are_no_settings_are_logged(
    tmp_path: Path, probes: Path, caplog: pytest.LogCaptureFixture
) -> None:
    environ = {"LLMD_SLOT": "3"}
    with running_daemon(directories_below(tmp_path, probes), models=(), environ=environ):
        pass
    (record,) = (vars(record) for record in caplog.records if record.message == "unknown_variable")
    assert (record["variable"], record["hint"]) == ("LLMD_SLOT", "the nearest name is LLMD_SLOTS")


def test_silence_in_a_stream_is_filled_as_often_as_asked_for(home: Path, probes: Path) -> None:
    with (
        running_daemon(directories_below(home, probes), ping_s=1e-4) as daemon,
        open_stream(daemon, {"max_tokens": 20}) as reply,
    ):
        lines = reply.read().decode().split("\n")
    assert any(line.startswith(":") for line in lines)
    assert lines[-3:] == ["data: [DONE]", "", ""]


def test_streams_keep_as_many_tokens_as_asked_for(
    home: Path, probes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []

    class NotingSupervisor(Supervisor):
        def __init__(self, *arguments: Any, buffer_tokens: int, **options: Any) -> None:
            super().__init__(*arguments, buffer_tokens=buffer_tokens, **options)
            kept.append(buffer_tokens)

    monkeypatch.setattr("llmd.server.models.model_loading.Supervisor", NotingSupervisor)
    with running_daemon(directories_below(home, probes), buffer_tokens=7) as daemon:
        assert chat(daemon).status == 200
    assert kept == [7]


def begin_drain(daemon: RunningDaemon) -> None:
    """Shut the daemon down, and return once it says that it drains."""
    daemon.shut_down()
    while send(daemon, "GET", "/ready").status == 200:
        pass


def test_drain_lets_running_requests_finish_and_refuses_new_ones(
    home: Path, probes: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with running_daemon(directories_below(home, probes), drain_s=20.0) as daemon:
        with open_stream(daemon, LONG) as reply:
            reply.readline()
            begin_drain(daemon)
            refused = chat(daemon)
            assert (refused.status, refused.error["code"]) == (503, "shutting_down")
            assert refused.headers["retry-after"] == "2"
            assert send(daemon, "GET", "/health").status == 200
            received = events(reply.read())
        assert received[-1] == "[DONE]"
        assert json.loads(received[-2])["choices"][0]["finish_reason"] == "length"
        daemon.thread.join()
    requests = [vars(record)["path"] for record in caplog.records if record.message == "request"]
    assert "/v1/chat/completions" in requests
    assert "/ready" not in requests  # requested during the drain, and answered with 503
    (serving,) = (vars(record) for record in caplog.records if record.message == "serving")
    assert (serving["version"], serving["models"]) == (daemon.serving.version, (MODEL,))


def test_requests_can_be_cancelled_while_the_daemon_drains(home: Path, probes: Path) -> None:
    with running_daemon(directories_below(home, probes), drain_s=1000.0) as daemon:
        with open_stream(daemon, LONG) as reply:
            reply.readline()
            begin_drain(daemon)
            (running,) = send(daemon, "GET", "/llmd/requests").json["requests"]
            done = send(daemon, "POST", "/llmd/cancel", {"request_id": running["request_id"]})
            assert done.status == 200
            received = events(reply.read())
        assert json.loads(received[-1])["error"]["code"] == "request_cancelled"
        daemon.thread.join()


def test_requests_that_outlast_the_drain_end_with_an_error(home: Path, probes: Path) -> None:
    with running_daemon(directories_below(home, probes), drain_s=0.0) as daemon:
        with open_stream(daemon, LONG) as reply:
            reply.readline()
            daemon.shut_down()
            received = events(reply.read())
        assert json.loads(received[-1])["error"]["code"] == "shutting_down"
        daemon.thread.join()


def test_second_signal_ends_the_drain(home: Path, probes: Path) -> None:
    with running_daemon(directories_below(home, probes), drain_s=1000.0) as daemon:
        with open_stream(daemon, LONG) as reply:
            reply.readline()
            daemon.shut_down()
            daemon.shut_down()
            received = events(reply.read())
        assert json.loads(received[-1])["error"]["code"] == "shutting_down"
        daemon.thread.join()


SERVE = """
import asyncio
import gc
import sys
from pathlib import Path
from llmd.config import load_settings
from llmd.engine.composition import make_host
from llmd.registry.store import Store
from llmd.server.daemon import Daemon, run_until_signal
from tests.serving.running import directories_below

directories = directories_below(Path(sys.argv[1]), Path(sys.argv[2]))
settings = load_settings(
    {"addr": [f"unix:{directories.user_socket}"], "device": "reference", "kv_memory": "64MiB"},
    environ={},
    directories=directories,
)
host, store = make_host(directories.cache), Store(directories.models, {})
daemon = Daemon(settings, host=host, store=store, models=sys.argv[3:])
asyncio.run(run_until_signal(daemon, lambda serving: print(serving, flush=True)))
sys.exit(0 if gc.get_freeze_count() else "what lives as long as the daemon is collected with the rest")
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_process_with_status_0_and_leaves_nothing(
    home: Path, probes: Path, number: int
) -> None:
    command = [sys.executable, "-c", SERVE, str(home), str(probes), MODEL]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == f"llmd 0.1.0 listens on unix:{home}/run/llmd.sock; models: {MODEL}\n"
        process.send_signal(number)
        assert process.stdout.read() == ""
    assert process.returncode == 0
    assert not os.path.lexists(home / "run" / "llmd.sock")


def test_sighup_reads_keys_again_and_a_damaged_file_changes_nothing(home: Path, probes: Path) -> None:
    keys = KeyFile(directories_below(home).keys)
    keys.add("ann")
    command = [sys.executable, "-c", SERVE, str(home), str(probes)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        keys.path.write_text("{")
        process.send_signal(signal.SIGHUP)
        assert "not_reloaded" in process.stderr.readline()
        assert process.poll() is None
        process.terminate()
    assert process.returncode == 0


def test_front_without_a_model_imports_no_tokenizer_library_and_no_engine() -> None:
    heavy = ("tokenizers", "sentencepiece", "tiktoken", "rich", "llmd.engine.core", "llmd.engine.loading")
    code = f"import sys, llmd.server.daemon; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
