from __future__ import annotations

import pytest

from tests.serving.http import send
from tests.serving.running import RunningDaemon


def test_version_is_one_that_clients_accept(daemon: RunningDaemon) -> None:
    body = send(daemon, "GET", "/api/version").json
    numbers = [int(part) for part in body["version"].split(".")]
    assert len(numbers) == 3
    assert numbers >= [0, 6, 4]  # VS Code's minimum
    assert body["llmd"] == send(daemon, "GET", "/version").json["version"]
    assert send(daemon, "HEAD", "/api/version").status == 200


def test_nothing_leaves_this_machine(daemon: RunningDaemon) -> None:
    body = send(daemon, "GET", "/api/status").json
    assert body == {"cloud": {"disabled": True, "source": "none"}}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/me", 401),
        ("/api/signout", 401),
        ("/api/push", 501),
        ("/api/blobs/sha256:00", 501),
    ],
)
def test_what_is_not_done_here_is_said_and_not_tried_again(
    daemon: RunningDaemon, path: str, status: int
) -> None:
    reply = send(daemon, "POST", path, {"model": "tiny", "input": "a"})
    assert reply.status == status
    assert isinstance(reply.json["error"], str)
    assert reply.headers["x-should-retry"] == "false"


def test_no_blob_is_ever_there(daemon: RunningDaemon) -> None:
    assert send(daemon, "HEAD", "/api/blobs/sha256:00").status == 404
