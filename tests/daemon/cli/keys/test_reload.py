from __future__ import annotations

import pytest

from llmd.api.errors import DaemonUnreachableError, LlmdError
from llmd.cli.keys.reload import tell_daemon
from llmd.client import Client
from llmd.config import load_settings


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DaemonUnreachableError("none"), ""),
        (LlmdError("keys.json is damaged"), "still uses the old keys: keys.json is damaged; then run"),
    ],
)
def test_only_a_daemon_that_refuses_is_worth_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: LlmdError, said: str
) -> None:
    def refuse(_client: Client) -> None:
        raise error

    monkeypatch.setattr(Client, "reload", refuse)
    tell_daemon(load_settings(environ={}))
    assert said in capsys.readouterr().err
