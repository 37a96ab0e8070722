from __future__ import annotations

import socket
from importlib.metadata import version
from pathlib import Path

from llmd.api.errors import LlmdError
from llmd.cli.doctor.patience import ANSWER_LIMIT_S, answer_of, is_refusal, is_refused, patient_client
from llmd.config import TcpAddress, UnixAddress
from tests.serving.running import RunningDaemon


def test_a_daemon_answers_with_its_version(daemon: RunningDaemon) -> None:
    assert answer_of(daemon.tcp) == version("llmd-daemon")
    assert not is_refused(UnixAddress(daemon.socket))
    assert patient_client()._timeout_s == ANSWER_LIMIT_S


def test_where_nobody_listens_there_is_no_answer(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = TcpAddress("127.0.0.1", server.getsockname()[1])
    assert is_refused(address)
    assert is_refused(UnixAddress(tmp_path / "none"))
    assert answer_of(address) is None


def test_only_a_daemon_that_wants_another_key_refuses() -> None:
    error = LlmdError("no")
    assert not is_refusal(error)
    error.exit_code = 4
    assert is_refusal(error)
