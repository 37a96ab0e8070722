"""Schemas of error replies, from what a dialect writes for an example."""

from __future__ import annotations

from typing import Any

from llmd.api.problem import ErrorShape, Problem
from llmd.server.openapi.body_schemas import Schema

EXAMPLE = Problem(
    400, "invalid_request_error", "invalid_value", "top_p must be between 0 and 1, not 2", "top_p"
)
SPARSE = Problem(500, "server_error", None, "the daemon failed", None)
"""A problem without the fields that a problem may lack."""
REQUEST_ID = "req_0123456789abcdef"


def error_response(shape: ErrorShape) -> dict[str, Any]:
    """Return the response object of every error in a dialect's form."""
    full, sparse = (shape.write(problem, REQUEST_ID).body for problem in (EXAMPLE, SPARSE))
    content = {"schema": schema_of(full, sparse), "example": full}
    return {
        "description": "The request failed; the message says why.",
        "content": {"application/json": content},
    }


def schema_of(*values: Any) -> Schema:
    """Return the schema that covers values of one shape; a field that is null in some may be null."""
    given = [value for value in values if value is not None]
    nulls = ["null"] if len(given) < len(values) else []
    if given and isinstance(given[0], dict):
        names = {name: None for value in given for name in value}
        return {
            "type": ["object", *nulls] if nulls else "object",
            "properties": {name: schema_of(*(value.get(name) for value in given)) for name in names},
            "required": [name for name in names if all(name in value for value in given)],
        }
    kind = _KINDS[type(given[0])] if given else "null"
    return {"type": [kind, *nulls] if nulls and given else kind}


_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array"}
