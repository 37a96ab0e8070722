"""Commands use the running daemon, or start one and leave it running."""

from __future__ import annotations

import io
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import ConfigError, DaemonUnreachableError, NotFoundError
from llmd.cli.connection import connect, named, reached
from llmd.client import Client
from llmd.registry.derived import DerivedModel
from llmd.registry.locks import locked
from llmd.registry.store import Store
from tests.serving.home import Home
from tests.serving.running import RunningDaemon

Llmd = Callable[..., Any]


@pytest.fixture
def started(home: Home) -> Iterator[Home]:
    """A home; stops any daemon that the test starts in it."""
    yield home
    home.llmd("stop", "--daemon")


def test_run_starts_a_daemon_says_so_and_leaves_it_running(started: Home) -> None:
    first = started.llmd("run", "tiny", "hello", "--temp", "0", "-n", "4")
    assert first.returncode == 0, first.stderr
    assert first.stderr.startswith("starting a daemon; `llmd stop --daemon` stops it\n")
    assert started.loaded()["name"] == "tiny"
    second = started.llmd("run", "tiny", "hello", "--temp", "0", "-n", "4")
    assert (second.stdout, second.stderr) == (first.stdout, "")
    assert started.llmd("stop", "--daemon").returncode == 0


def test_no_start_ends_with_six_and_the_places_that_were_tried(home: Home) -> None:
    done = home.llmd("run", "tiny", "hello", "--no-start")
    assert (done.returncode, done.stdout) == (DaemonUnreachableError.exit_code, "")
    assert str(home.socket) in done.stderr
    assert "llmd serve" in done.stderr


def test_a_daemon_that_was_named_is_never_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = f"unix:{tmp_path}/none.sock"
    with pytest.raises(DaemonUnreachableError, match=r"none\.sock"):
        connect(nowhere, None, None, start=True)
    monkeypatch.setenv("LLMD_HOST", nowhere)
    with pytest.raises(DaemonUnreachableError, match=r"none\.sock"):
        connect(None, None, None, start=True)


def test_host_wins_over_the_variable(daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMD_HOST", "127.0.0.1:1")
    client = connect(f"unix:{daemon.socket}", None, None)
    assert client.version() == daemon.serving.version
    with pytest.raises(ConfigError, match="ftp"):
        connect("ftp://box", None, None)


def test_a_daemon_that_does_not_answer_in_time_ends_a_command_with_seven(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        done = home.llmd("ps", "--host", host, "--timeout", "0.2")
    assert (done.returncode, done.stdout) == (7, "")
    assert "did not answer in time" in done.stderr
    assert home.llmd("ps", "--timeout", "0").returncode == ConfigError.exit_code


@pytest.mark.parametrize(
    "words",
    [
        ["run", "tiny", "hello"],
        ["embed", "tiny", "hello"],
        ["chat", "tiny"],
        ["ps"],
        ["stop", "tiny"],
        ["version"],
    ],
)
def test_every_command_looks_where_its_flags_say_and_waits_as_long(
    llmd: Llmd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    asked: list[tuple[object, ...]] = []

    def nowhere(*flags: object, **_: object) -> Client:
        asked.append(flags)
        raise DaemonUnreachableError("nobody")

    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr(f"llmd.cli.{words[0]}.connect", nowhere)
    llmd(*words, "--host", "box:1", "--timeout", "3", "--config", str(tmp_path / "file"))
    assert asked == [("box:1", 3.0, tmp_path / "file")]


def test_a_file_of_settings_names_the_daemon(daemon: RunningDaemon, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'[client]\nhost = "unix:{daemon.socket}"\n')
    assert connect(None, None, file).version() == daemon.serving.version


def test_a_running_daemon_is_used_and_stopped_while_the_file_is_broken(home: Home) -> None:
    file = home.folder / "config" / "llmd" / "config.toml"
    file.parent.mkdir(parents=True)
    with home.serve() as served:
        file.write_text("[server]\nkeep_alive = 5m\n[engine]\nslots = 0\n")
        listed = home.llmd("ps", "--json")
        assert json.loads(listed.stdout)["models"] == []
        (warning,) = listed.stderr.splitlines()
        assert warning.startswith(f"llmd: warning: {file}:2 cannot be read: ")
        assert "(and 1 more)" in warning
        assert home.llmd("list").returncode == 0
        refused = home.llmd("reload")
        assert refused.returncode != 0
        assert f"{file}:2 cannot be read" in refused.stderr.splitlines()[1]
        assert home.llmd("stop", "--daemon").returncode == 0
        assert served.process.wait(20) == 0
    assert home.llmd("run", "tiny", "hello").returncode == ConfigError.exit_code


@pytest.mark.parametrize("line", ["host = box:9000", 'host = "unix:"'])
def test_a_wrong_address_in_the_file_is_an_error_since_another_daemon_could_answer(
    tmp_path: Path, line: str
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[client]\n{line}\n")
    with pytest.raises(ConfigError, match=r"config\.toml:2"):
        connect(None, None, file)


def test_a_client_is_reached_where_something_answers(daemon: RunningDaemon, tmp_path: Path) -> None:
    client = daemon.client()
    assert reached(client) is client
    with pytest.raises(DaemonUnreachableError):
        reached(Client(f"unix:{tmp_path}/none.sock"))


def test_only_one_of_several_starts_a_daemon(tmp_path: Path) -> None:
    lock, order = tmp_path / "state" / "start.lock", []
    entered, leave = threading.Event(), threading.Event()

    def first() -> None:
        with locked(lock, alone=True):
            entered.set()
            leave.wait()
            order.append("first")

    other = threading.Thread(target=first, name="first command")
    other.start()
    entered.wait()
    leave.set()
    with locked(lock, alone=True):
        order.append("second")
    other.join()
    assert order == ["first", "second"]


def test_paths_are_made_absolute_for_the_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models" / "mine").mkdir(parents=True)
    (tmp_path / "m.gguf").touch()
    monkeypatch.chdir(tmp_path)
    assert named("m.gguf") == str(tmp_path / "m.gguf")
    assert named("./absent") == str(tmp_path / "absent")
    assert named("models/mine") == str(tmp_path / "models" / "mine")
    assert named("guide") == "guide"
    assert named("org/name") == "org/name"
    assert named("caf\udce9") == "caf\ufffd"


def test_a_file_that_is_missing_is_not_taken_for_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "emil-q4.gguf").touch()
    with pytest.raises(
        NotFoundError, match=r"no such file or directory: emil-q8\.gguf .*there is emil-q4\.gguf"
    ):
        named("emil-q8.gguf")
    with pytest.raises(NotFoundError, match=r"no such file or directory: model\.safetensors"):
        named("model.safetensors")
    Store(tmp_path / "data" / "llmd" / "models", {}).derived.save("odd.gguf", DerivedModel("guide", 0.0))
    assert named("odd.gguf") == "odd.gguf"
