from __future__ import annotations

from typing import Any, Literal

import pytest

from llmd.api.errors import PluginError
from llmd.api.plugins import Route
from llmd.server.http.routing import RouteTable, match, normalized


async def handler(_request: Any, _service: Any) -> None:
    """A placeholder for any handler."""


def route(method: Literal["GET", "HEAD", "POST", "DELETE"], path: str) -> Route:
    return Route(method, path, handler)


@pytest.fixture
def table() -> RouteTable:
    return RouteTable(
        [
            route("POST", "/v1/chat/completions"),
            route("GET", "/v1/models"),
            route("GET", "/v1/models/{id}"),
            route("DELETE", "/v1/models/{id}"),
            route("GET", "/health"),
        ]
    )


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/v1/chat/completions/",
        "//v1//chat/completions",
        "/v1/v1/chat/completions",
        "/chat/completions",
    ],
)
def test_forgives_how_paths_are_written(table: RouteTable, path: str) -> None:
    found = match(table, "POST", path)
    assert found.route is not None
    assert found.route.path == "/v1/chat/completions"


@pytest.mark.parametrize("path", ["/v1/models/a", "/v1/models/org/name:tag", "/models/a"])
def test_last_parameter_takes_the_whole_rest(table: RouteTable, path: str) -> None:
    found = match(table, "GET", path)
    assert found.route is not None
    assert found.route.path == "/v1/models/{id}"


def test_head_is_answered_as_get(table: RouteTable) -> None:
    found = match(table, "HEAD", "/health")
    assert found.route is not None
    assert found.route.method == "GET"


def test_head_may_have_a_route_of_its_own() -> None:
    table = RouteTable([route("HEAD", "/blobs/{id}"), route("POST", "/blobs/{id}")])
    found = match(table, "HEAD", "/blobs/1")
    assert found.route is not None
    assert found.route.method == "HEAD"
    assert found.allowed == {"HEAD", "POST", "OPTIONS"}


def test_tells_which_methods_a_path_has(table: RouteTable) -> None:
    assert match(table, "PUT", "/v1/models/a").route is None
    assert match(table, "PUT", "/v1/models/a").allowed == {"GET", "DELETE", "HEAD", "OPTIONS"}
    assert match(table, "GET", "/v1/chat/completions").allowed == {"POST", "OPTIONS"}


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/model", "/v1/modelsx", "/v1/chat", "/healthy"])
def test_unknown_paths_have_no_methods(table: RouteTable, path: str) -> None:
    assert match(table, "GET", path).allowed == frozenset()


def test_two_dialects_cannot_serve_one_path() -> None:
    with pytest.raises(PluginError, match="GET /health"):
        RouteTable([route("GET", "/health"), route("GET", "/health")])


def test_normal_form_keeps_the_root_and_names_that_begin_with_v1() -> None:
    assert normalized("//") == "/"
    assert normalized("/v1/v1beta/x/") == "/v1/v1beta/x"
