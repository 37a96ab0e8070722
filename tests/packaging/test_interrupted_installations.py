"""Whenever a command for plugins is killed, the next one finds the environment as it was before."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.packaging.interruption import begun
from tests.packaging.made_wheels import HANGS_IN_PLACE, HANGS_WHERE_IT_IS_TRIED, make_plugin
from tests.packaging.user import User, snapshot

pytestmark = pytest.mark.packaging

PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND = """
import pathlib, time
pathlib.Path.home().joinpath("reached").touch()
time.sleep(600)
"""
# Found through PYTHONPATH: kills `llmd plugins` after it has moved some files of the environment.
KILLS = """
import os, signal, sys
left = int(os.environ["LLMD_TEST_MOVES"])

def count(frame, event, called):
    global left
    if event == "c_return" and called is os.replace and "file_changes" in frame.f_back.f_code.co_filename:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

if "plugins" in sys.orig_argv:
    sys.setprofile(count)
"""


def test_a_killed_installation_is_undone_by_the_next_command(user: User, index: Path) -> None:
    before = user.freeze()
    wheel = make_plugin(index, "made-plugin", source=HANGS_IN_PLACE)
    with begun(user, "plugins", "install", str(wheel)) as running:
        running.kill()
        running.wait()
        assert any(line.startswith("made-plugin ") for line in user.freeze()), "it was killed in the middle"
        done = user.llmd("plugins", "list")
    assert done.stderr == (
        "llmd: an earlier command was interrupted while installing made-plugin 1.0;"
        " the environment is as before that\n"
    )
    assert "made-plugin" not in done.stdout
    assert user.freeze() == before


@pytest.mark.exhaustive
@pytest.mark.parametrize("stage", ["built", "tried"])
def test_a_command_killed_before_it_installs_has_changed_nothing(
    user: User, index: Path, tmp_path: Path, stage: str
) -> None:
    before, files = user.freeze(), snapshot(user.environment.prefix)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "backend.py").write_text(BACKEND)
    wheel = make_plugin(index, "made-plugin", source=HANGS_WHERE_IT_IS_TRIED)
    with begun(user, "plugins", "install", str(tmp_path if stage == "built" else wheel)) as running:
        running.kill()
        running.wait()
        assert user.freeze() == before
        done = user.llmd("plugins", "list")
    assert (done.returncode, done.stderr) == (0, ""), "nothing has to be undone"
    assert snapshot(user.environment.prefix) == files


@pytest.mark.exhaustive
def test_an_interrupt_undoes_at_once_what_was_done(user: User, index: Path) -> None:
    files = snapshot(user.environment.prefix)
    wheel = make_plugin(index, "made-plugin", source=HANGS_IN_PLACE)
    with begun(user, "plugins", "install", str(wheel)) as running:
        running.send_signal(signal.SIGINT)
        assert running.wait() == 130
        assert snapshot(user.environment.prefix) == files


@pytest.mark.exhaustive
@pytest.mark.parametrize("moves", [1, 3])
@pytest.mark.parametrize("command", ["install", "upgrade", "uninstall"])
def test_a_command_killed_after_some_moves_of_files_is_undone(
    user: User, index: Path, tmp_path: Path, command: str, moves: int
) -> None:
    if command != "install":
        make_plugin(index, "made-plugin", "1.0")
        assert user.llmd("plugins", "install", "made-plugin").returncode == 0
    before, files = user.freeze(), snapshot(user.environment.prefix)
    make_plugin(index, "made-plugin", "2.0")
    arguments = ["uninstall"] if command == "uninstall" else ["install", "--upgrade"]
    (tmp_path / "sitecustomize.py").write_text(KILLS)
    variables = {"PYTHONPATH": str(tmp_path), "LLMD_TEST_MOVES": str(moves)}
    done = user.llmd("plugins", *arguments, "made-plugin", only={**user.variables(), **variables})
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert snapshot(user.environment.prefix) != files, "it was killed in the middle"
    assert "was interrupted while" in user.llmd("plugins", "list").stderr
    assert (user.freeze(), snapshot(user.environment.prefix)) == (before, files)
    if command != "install":
        assert user.llmd("plugins", "uninstall", "made-plugin").returncode == 0
