from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from llmd.engine.composition import make_host
from llmd.server.http.json_line import encode_json
from llmd.server.http.routing import ServedDialect
from llmd.server.openapi.document import document


@pytest.fixture(scope="module")
def dialects() -> list[ServedDialect]:
    with tempfile.TemporaryDirectory() as cache:
        return [ServedDialect.of(one) for one in make_host(Path(cache)).dialects().values()]


@pytest.fixture(scope="module")
def described(dialects: list[ServedDialect]) -> dict[str, Any]:
    return document("1.2.3", dialects)


def test_the_document_is_valid(described: dict[str, Any]) -> None:
    assert list(OpenAPIV31SpecValidator(described).iter_errors()) == []
    encode_json(described)


def test_a_document_that_is_not_valid_is_found(described: dict[str, Any]) -> None:
    assert list(OpenAPIV31SpecValidator(described | {"paths": {"/": {"get": {"tags": 1}}}}).iter_errors())


def test_every_route_is_in_it_and_nothing_else(
    dialects: list[ServedDialect], described: dict[str, Any]
) -> None:
    routes = {(route.method.lower(), route.path) for dialect in dialects for route in dialect.routes}
    found = {(method, path) for path, methods in described["paths"].items() for method in methods}
    assert found == routes


def test_every_operation_has_a_summary_and_an_id_of_its_own(described: dict[str, Any]) -> None:
    operations = [one for methods in described["paths"].values() for one in methods.values()]
    assert all(one["summary"].endswith(".") for one in operations)
    assert max(Counter(one["operationId"] for one in operations).values()) == 1


def test_every_field_of_a_body_is_described(described: dict[str, Any]) -> None:
    bare = [
        (path, name)
        for path, methods in described["paths"].items()
        for one in methods.values()
        if "requestBody" in one
        for name, field in one["requestBody"]["content"]["application/json"]["schema"]["properties"].items()
        if not field.get("description")
    ]
    assert bare == []
