from __future__ import annotations

import jsonschema
import pytest

from llmd.api.problem import ErrorShape
from llmd.server.dialects.anthropic.errors import ANTHROPIC
from llmd.server.dialects.ollama.errors import OLLAMA
from llmd.server.http.error_shapes import OPENAI
from llmd.server.http.problems import INTERNAL, unknown_url
from llmd.server.openapi.error_schemas import error_response, schema_of


@pytest.mark.parametrize("shape", [OPENAI, OLLAMA, ANTHROPIC])
def test_errors_that_a_dialect_writes_match_its_schema(shape: ErrorShape) -> None:
    schema = error_response(shape)["content"]["application/json"]["schema"]
    for problem in (INTERNAL, unknown_url("/nowhere")):
        jsonschema.validate(shape.write(problem, "req_1").body, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"error": 1}, schema)


def test_fields_that_are_missing_or_null_in_some_are_optional() -> None:
    assert schema_of({"a": 1, "b": "x"}, {"a": 2, "b": None}) == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": ["string", "null"]}},
        "required": ["a", "b"],
    }
    assert schema_of({"a": {"b": True}}, {})["required"] == []
