from __future__ import annotations

from llmd.server.dialects.native.reply import reply


def test_a_reply_has_the_version_of_its_form() -> None:
    found = reply({"stopped": "tiny"})
    assert (found.status, found.content_type) == (200, "application/json")
    assert found.body == b'{"schema":1,"stopped":"tiny"}'
