"""Commands for plugins first undo what was interrupted."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from llmd.cli.plugins import running_daemons
from llmd.cli.plugins.notices import choice_notes, daemon_notes, of_service, reload_note, say
from llmd.cli.service.units import SYSTEM_DIRECTORIES
from llmd.config.directories import Directories
from llmd.host.installation.file_changes import FOLDER, Journal
from tests.serving.running import RunningDaemon

Llmd = Callable[..., Any]
RELOAD = reload_note("llmd reload")


@pytest.fixture
def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment in which a file was placed; returns the file."""
    site = tmp_path / "prefix" / "site"
    (site / FOLDER).mkdir(parents=True)
    (site / "made.py").touch()
    (site / FOLDER / "journal.json").write_bytes(
        msgspec.json.encode(Journal("installing made", [], ["site/made.py"]))
    )
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    real = sysconfig.get_path
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(site) if name == "purelib" else real(name))
    return site / "made.py"


@pytest.mark.parametrize(
    "command", [("plugins", "search"), ("serve", "no-such-model"), ("doctor", "folders", "--json")]
)
def test_an_interrupted_change_is_undone_with_a_message(
    llmd: Llmd, interrupted: Path, command: tuple[str, ...]
) -> None:
    done = llmd(*command)
    assert "llmd: an earlier command was interrupted while installing made;" in done.err
    assert not interrupted.exists()
    assert "interrupted" not in llmd("plugins", "search").err


def test_a_running_daemon_must_be_restarted(asked: Llmd, daemon: RunningDaemon) -> None:
    assert daemon_notes() == [RELOAD]
    assert choice_notes("plugins disable ollama") == [RELOAD]


def test_the_service_of_the_system_has_choices_of_its_own(
    asked: Llmd, daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    directories = msgspec.structs.replace(daemon.directories, system_socket=daemon.socket)
    monkeypatch.setattr(Directories, "of", lambda _environ: directories)
    (note,) = choice_notes("plugins disable ollama")
    assert note == of_service("plugins disable ollama", "llmd reload")
    assert "sudo -u llmd XDG_CONFIG_HOME=/var/lib/llmd/config " in note
    assert SYSTEM_DIRECTORIES.config == Path("/var/lib/llmd/config/llmd")
    own = msgspec.structs.replace(directories, config=SYSTEM_DIRECTORIES.config)
    monkeypatch.setattr(Directories, "of", lambda _environ: own)
    assert choice_notes("plugins disable ollama") == [RELOAD]


def test_without_a_daemon_nothing_is_said(
    llmd: Llmd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LLMD_HOST", f"unix:{tmp_path}/none")
    assert daemon_notes() == choice_notes("plugins disable ollama") == []


@pytest.fixture
def elsewhere(asked: Llmd, daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a daemon whose host belongs to another machine."""
    host = str(daemon.tcp)
    monkeypatch.setenv("LLMD_HOST", host)
    monkeypatch.setattr(running_daemons, "is_own", lambda _family, _peer: False)
    return host


def test_a_daemon_of_another_machine_is_not_reloaded(
    elsewhere: str, daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LLMD_ADDR", f"unix:{tmp_path}/none")
    (note,) = daemon_notes()
    assert note.startswith(f"the daemon at {elsewhere} (LLMD_HOST) is on another machine")
    assert "reload" not in note
    assert choice_notes("plugins disable ollama") == [note]

    monkeypatch.setenv("LLMD_ADDR", f"unix:{daemon.socket}")
    here = reload_note(f"llmd reload --host unix:{daemon.socket}")
    assert daemon_notes() == choice_notes("plugins disable ollama") == [note, here]


def test_notes_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    say(["one", "two"])
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "one\ntwo\n")
