from __future__ import annotations

from llmd.server.http.json_response import json_response


def test_reply_has_status_headers_and_type() -> None:
    reply = json_response({}, status=418, headers={"x-tea": "yes"})
    assert (reply.status, reply.headers["x-tea"], reply.content_type) == (418, "yes", "application/json")
