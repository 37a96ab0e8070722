from __future__ import annotations

from llmd.server.generation.prepared_request import HEADER_LEN
from tests.serving.http import chat
from tests.serving.running import MODEL, RunningDaemon


def test_reply_names_the_model_that_answered_and_what_was_ignored(daemon: RunningDaemon) -> None:
    reply = chat(daemon, model="gpt-4o", strange=1, stream=True)
    assert reply.headers["x-llmd-model"] == MODEL
    assert reply.headers["x-llmd-ignored"] == "strange"


def test_names_of_ignored_fields_cannot_fill_a_header(daemon: RunningDaemon) -> None:
    reply = chat(daemon, **{f"field_{i}_{'x' * 50}": i for i in range(100)})
    assert (reply.status, len(reply.headers["x-llmd-ignored"])) == (200, HEADER_LEN)
