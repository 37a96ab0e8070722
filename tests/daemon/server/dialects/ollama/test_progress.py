from __future__ import annotations

from tests.serving.http import send
from tests.serving.ndjson import lines_of
from tests.serving.running import MODEL, RunningDaemon


def test_progress_is_lines_or_the_last_one_alone(daemon: RunningDaemon) -> None:
    body = {"model": "progress", "from": MODEL}
    reply = send(daemon, "POST", "/api/create", body)
    assert reply.headers["Content-Type"] == "application/x-ndjson"
    assert [line["status"] for line in lines_of(reply)][-1] == "success"
    assert len(lines_of(reply)) > 1
    whole = send(daemon, "POST", "/api/create", {**body, "stream": False})
    assert whole.json == {"status": "success"}
    send(daemon, "DELETE", "/api/delete", {"model": "progress"})
