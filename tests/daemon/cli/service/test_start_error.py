from __future__ import annotations

import pytest

from llmd.api.errors import LlmdError, NotFoundError
from llmd.cli.failures import show_failure
from llmd.cli.service.start_error import last_error, start_error
from tests.daemon.cli.service.conftest import Manager


def test_the_last_error_of_the_log_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    show_failure(LlmdError("old", hint="old"), as_json=False)
    show_failure(NotFoundError("there is no model 'nobody'", hint="see `llmd list`"), as_json=False)
    lines = ["info began", *capsys.readouterr().err.splitlines(), "Main process exited", "  Subject"]
    found = last_error(lines)
    assert found is not None
    assert found.message == "the daemon did not start: there is no model 'nobody'"
    assert found.hint == "see `llmd list`"


def test_an_error_may_have_no_hint_and_a_log_no_error() -> None:
    found = last_error(["llmd: it failed"])
    assert found is not None
    assert (found.message, found.hint) == ("the daemon did not start: it failed", "")
    assert last_error([]) is last_error(["info began", "Main process exited"]) is None


def test_only_what_was_logged_since_the_start_is_read(manager: Manager) -> None:
    manager.log("llmd: it failed\n")
    assert start_error(("journalctl", "-u", "llmd.service"), 17.9) is not None
    assert manager.calls == ["journalctl -u llmd.service --quiet --no-pager --output=cat --since=@17"]


def test_without_a_journal_there_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert start_error(("journalctl",), 0.0) is None
