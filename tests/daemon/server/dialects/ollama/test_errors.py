from __future__ import annotations

from llmd.api.errors import ContextLengthError, NotFoundError
from llmd.server.dialects.ollama.errors import write_error
from llmd.server.http.problems import problem_of
from tests.serving.http import send
from tests.serving.running import RunningDaemon


def test_error_is_a_text() -> None:
    reply = write_error(problem_of(NotFoundError("no such model", hint="see the list")), "")
    assert (reply.status, reply.body) == (404, {"error": "no such model (see the list)"})


def test_long_prompt_is_told_with_both_numbers_and_num_ctx() -> None:
    text = write_error(problem_of(ContextLengthError(700, 512)), "").body["error"]
    assert all(word in text for word in ("700", "512", "num_ctx"))


def test_what_the_door_refuses_has_this_form_too(daemon: RunningDaemon) -> None:
    unknown = send(daemon, "GET", "/api/nothing")
    assert (unknown.status, type(unknown.json["error"])) == (404, str)
    wrong = send(daemon, "GET", "/api/show")
    assert (wrong.status, type(wrong.json["error"])) == (405, str)
    assert wrong.headers["Allow"] == "OPTIONS, POST"
    assert send(daemon, "POST", "/api/show", b"{").json["error"].startswith("the body is not JSON")
