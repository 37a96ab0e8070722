"""``llmd tui`` as a person starts it: on a terminal, with a real daemon or without one."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from click.testing import CliRunner

from llmd_tui.command import command, log_to
from tests.serving.home import LLMD, Home
from tests.serving.terminal import terminal


def test_an_unknown_screen_names_those_that_exist() -> None:
    done = CliRunner().invoke(command, ["nonsense"])
    assert done.exit_code == 2
    assert "'nonsense' is not one of chat, models, devices, monitor, kv, plugins, logs" in done.output


def test_without_a_daemon_none_is_started_if_none_may_be(home: Home) -> None:
    done = home.llmd("tui", "--no-start")
    assert done.returncode == 6
    assert "no daemon answers" in done.stderr


def test_the_demo_needs_no_daemon(home: Home) -> None:
    with terminal(
        (*LLMD, "tui", "monitor", "--demo"), home.environment, term="xterm-256color", columns=120
    ) as shown:
        shown.wait_for("Monitor")
        shown.wait_for("a recording")
        shown.type("\x11")  # Ctrl-Q
        assert shown.end() == 0


def test_a_configuration_file_names_the_daemon(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'[client]\nhost = "unix:{tmp_path}/other.sock"\n')
    done = home.llmd("tui", "--config", str(file))
    assert done.returncode == 6
    assert "other.sock" in done.stderr


def test_text_mode_writes_sentences(home: Home) -> None:
    with home.serve("tiny"), terminal((*LLMD, "tui", "--text"), home.environment) as shown:
        shown.wait_for("tiny")
        shown.interrupt()
        assert shown.end() in {0, 130}


@pytest.mark.parametrize("given", ["wrong", "use"])
def test_text_mode_ends_with_what_a_daemon_says_that_refuses_the_key(home: Home, given: str) -> None:
    use = home.json("keys", "add", "use")["key"]
    environment = home.environment | {"LLMD_ADDR": "127.0.0.1:0", "LLMD_REQUIRE_KEY": "true"}
    secured = Home(home.folder, environment)
    with secured.serve() as served:
        environment["LLMD_API_KEY"] = use if given == "use" else "wrong"
        done = secured.llmd("tui", "--text", "--host", served.url)
    assert done.returncode == 4, done.stderr
    expected = (
        "this API key is unknown" if given == "wrong" else "the key use does not allow management requests"
    )
    assert expected in done.stderr
    assert "No daemon answers" not in done.stdout


def test_what_is_logged_does_not_cover_the_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("of a test")
    logger.addHandler(logging.StreamHandler())
    file = tmp_path / "state" / "tui.log"
    log_to(file, logger)
    assert not file.exists()
    logger.error("a session was not closed")
    assert file.read_text() == "a session was not closed\n"
    assert capsys.readouterr().err == ""
    for handler in logger.handlers:
        handler.close()
