from __future__ import annotations

from typing import Any, TypedDict

import pytest

from llmd.api.plugins import Route
from llmd.server.openapi.operations import operation, operation_id


class Body(TypedDict):
    name: str


async def handler(_request: Any, _service: Any) -> None:
    """Do one thing
    with ``code``.

    And details that clients need not know.
    """


def test_an_operation_tells_what_its_route_tells() -> None:
    route = Route("POST", "/things/{id}", handler, right="manage", body=(Body,), query=("model",))
    found = operation("tag", route, {})
    assert found["summary"] == "Do one thing with `code`."
    assert (found["operationId"], found["tags"]) == ("post_things_id", ["tag"])
    assert [(one["name"], one["in"]) for one in found["parameters"]] == [("model", "query"), ("id", "path")]
    assert found["requestBody"]["required"] is True
    assert found["responses"]["default"] == {"$ref": "#/components/responses/tag_error"}
    assert "security" not in found


def test_a_route_without_a_right_needs_no_key() -> None:
    assert operation("tag", Route("GET", "/", handler, right="none"), {})["security"] == []


@pytest.mark.parametrize(
    ("replies", "told"),
    [
        (("application/json",), "The answer."),
        (("text/event-stream",), "A stream of server-sent events."),
        (
            ("application/json", "application/x-ndjson"),
            "The answer, whole or streamed as lines of JSON: `stream` in the body decides.",
        ),
    ],
)
def test_streams_are_told(replies: tuple[str, ...], told: str) -> None:
    found = operation("tag", Route("GET", "/", handler, replies=replies), {})["responses"]["200"]
    assert (found["description"], tuple(found["content"])) == (told, replies)


def test_a_route_that_always_refuses_has_only_errors() -> None:
    assert set(operation("tag", Route("POST", "/", handler, replies=()), {})["responses"]) == {"default"}


def test_a_websocket_is_a_change_of_protocol() -> None:
    found = operation("tag", Route("GET", "/", handler, replies=("websocket",)), {})
    assert found["responses"]["101"] == {"description": "The connection becomes a WebSocket."}


def test_ids_are_made_of_method_and_path() -> None:
    assert operation_id(Route("GET", "/v1/models/{id}", handler)) == "get_v1_models_id"
    assert operation_id(Route("GET", "/", handler)) == "get"
