from __future__ import annotations

import pytest

from tests.serving.http import send
from tests.serving.running import RunningDaemon


@pytest.mark.parametrize("path", ["/api/hello", "/"])
def test_probes_of_claude_code_are_answered_and_not_logged(
    daemon: RunningDaemon, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    caplog.set_level("INFO")
    reply = send(daemon, "HEAD", path)
    assert (reply.status, reply.content) == (200, b"")
    assert send(daemon, "GET", "/v1/models").status == 200  # the probe would be in the log by now
    assert [vars(record).get("path") for record in caplog.records] == ["/v1/models"]


def test_hello_says_who_answers(daemon: RunningDaemon) -> None:
    assert send(daemon, "GET", "/api/hello").json == {"message": f"llmd {daemon.serving.version}"}
