"""Every failure on Anthropic's paths has the format that its clients expect."""

from __future__ import annotations

import pytest
from anthropic.types import ErrorResponse

from llmd.api.errors import ContextLengthError
from llmd.api.problem import Problem
from llmd.server.dialects.anthropic.errors import write_error
from llmd.server.http.problems import problem_of
from tests.serving.http import Reply, send
from tests.serving.running import RunningDaemon

MESSAGES = "/v1/messages"


@pytest.mark.parametrize(
    ("status", "sent", "kind"),
    [
        (400, 400, "invalid_request_error"),
        (401, 401, "authentication_error"),
        (403, 403, "permission_error"),
        (404, 404, "not_found_error"),
        (405, 405, "invalid_request_error"),
        (408, 408, "timeout_error"),
        (413, 413, "invalid_request_error"),
        (429, 429, "rate_limit_error"),
        (500, 500, "api_error"),
        (501, 501, "api_error"),
        (503, 529, "overloaded_error"),
        (504, 504, "timeout_error"),
    ],
)
def test_each_status_has_its_type(status: int, sent: int, kind: str) -> None:
    reply = write_error(Problem(status, "x", "y", "no"), "req_1")
    assert reply.status == sent
    assert reply.body == {
        "type": "error",
        "error": {"type": kind, "message": "no"},
        "request_id": "req_1",
    }
    assert ErrorResponse.model_validate(reply.body, strict=True).error.type == kind


def test_prompt_too_long_is_told_in_the_words_that_agents_look_for() -> None:
    error = write_error(problem_of(ContextLengthError(700, 512)), "").body["error"]
    assert error["message"] == "prompt is too long: 700 tokens > 512 maximum"


def test_message_names_the_field_once() -> None:
    def message(text: str, param: str) -> str:
        body = write_error(Problem(400, "x", None, text, param), "").body
        return str(body["error"]["message"])

    assert message("the content is odd", "messages[0]") == "messages[0]: the content is odd"
    assert message("top_k must be small", "top_k") == "top_k must be small"


def check(reply: Reply, status: int, kind: str) -> None:
    body = reply.json
    assert (reply.status, body["type"], body["error"]["type"]) == (status, "error", kind)
    assert body["error"]["message"]
    assert body["request_id"] == reply.headers["request-id"]


def test_what_the_door_refuses_has_this_form_too(daemon: RunningDaemon) -> None:
    check(send(daemon, "GET", MESSAGES), 405, "invalid_request_error")
    check(send(daemon, "POST", f"{MESSAGES}/nothing", {}), 404, "not_found_error")
    check(send(daemon, "POST", MESSAGES, {}, {"Host": "evil.example"}), 403, "permission_error")
    check(send(daemon, "POST", MESSAGES, b"x" * 200_001), 413, "invalid_request_error")


def test_its_clients_are_known_by_their_header_on_shared_paths(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_self: object) -> None:
        raise ZeroDivisionError

    headers = {"anthropic-version": "2023-06-01"}
    check(send(daemon, "DELETE", "/v1/models", headers=headers), 405, "invalid_request_error")
    check(send(daemon, "GET", "/v1/models/nobody", headers=headers), 404, "not_found_error")
    with monkeypatch.context() as patch:
        patch.setattr("llmd.registry.store.Store.list", broken)
        check(send(daemon, "GET", "/v1/models", headers=headers), 500, "api_error")
