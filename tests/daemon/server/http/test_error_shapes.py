from __future__ import annotations

import json

import pytest
from aiohttp.test_utils import make_mocked_request

from llmd.api.problem import ErrorReply, ErrorShape, Problem
from llmd.server.http.error_shapes import OPENAI, REQUEST_ID, SHAPE, ErrorShapes, error_reply, error_response

PROBLEM = Problem(404, "not_found_error", "model_not_found", "no", "model", {"n": 1}, {"retry-after": "2"})


def write(problem: Problem, request_id: str) -> ErrorReply:
    return ErrorReply(418, {"what": problem.message, "id": request_id})


OWN = ErrorShape(write, paths=("/v1/messages", "/api"), header="x-own")
SHAPES = ErrorShapes([OWN])


@pytest.mark.parametrize(
    "path", ["/v1/messages", "/v1/messages/nothing", "//v1/messages/", "/messages", "/api/x", "/api"]
)
def test_paths_of_a_dialect_and_below_have_its_form(path: str) -> None:
    assert SHAPES.of(path, {}) is OWN


@pytest.mark.parametrize("path", ["/", "/v1/models", "/v1/messages2", "/apis", "/v1/chat/messages"])
def test_other_paths_have_openais(path: str) -> None:
    assert SHAPES.of(path, {}) is OPENAI


def test_a_header_tells_whose_client_asks_on_shared_paths() -> None:
    other = ErrorShape(write, paths=("/other",))
    shapes = ErrorShapes([other, OWN])
    assert shapes.of("/v1/models", {"x-own": "1"}) is OWN
    assert shapes.of("/other", {"x-own": "1"}) is other


def test_openais_form_has_every_field() -> None:
    assert error_reply(make_mocked_request("GET", "/"), PROBLEM) == ErrorReply(
        404,
        {
            "error": {
                "message": "no",
                "type": "not_found_error",
                "param": "model",
                "code": "model_not_found",
                "n": 1,
            }
        },
    )


def test_reply_has_the_status_and_body_of_the_form_and_the_headers_of_the_problem() -> None:
    request = make_mocked_request("GET", "/")
    request[SHAPE], request[REQUEST_ID] = OWN, "req_1"
    response = error_response(request, PROBLEM)
    assert (response.status, response.headers["retry-after"]) == (418, "2")
    assert isinstance(response.body, bytes)
    assert json.loads(response.body) == {"what": "no", "id": "req_1"}


def test_message_with_bytes_that_are_no_text_is_sent_all_the_same() -> None:
    problem = Problem(400, "invalid_request_error", None, "not \udcff")
    body = error_response(make_mocked_request("GET", "/"), problem).body
    assert isinstance(body, bytes)
    assert json.loads(body)["error"]["message"] == r"not \udcff"
