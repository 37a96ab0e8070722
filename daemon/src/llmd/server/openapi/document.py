"""The OpenAPI 3.1 document of a daemon."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llmd.server.http.error_shapes import OPENAI
from llmd.server.http.routing import ServedDialect
from llmd.server.openapi.body_schemas import Schema
from llmd.server.openapi.error_schemas import error_response
from llmd.server.openapi.operations import operation

VERSION = "3.1.1"
ABOUT = """The HTTP APIs of one llmd daemon, by dialect.

- In a request, null means absent; numbers and booleans may also be strings.
- Unknown fields are ignored and named in the header `x-llmd-ignored`. A field that would change the answer, but
  cannot be honoured, is refused by name.
- A path also works without its leading `/v1`.
- Streamed answers that fail end with the dialect's error as their last event."""
SECURITY: dict[str, dict[str, str]] = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "A key of `llmd keys add`. Clients on the daemon's machine need none by default.",
    },
    "x-api-key": {
        "type": "apiKey",
        "in": "header",
        "name": "x-api-key",
        "description": "The same key, as Anthropic's clients send it.",
    },
}


def document(version: str, dialects: Iterable[ServedDialect]) -> dict[str, Any]:
    """Return the description of every route of the dialects. Blocks: it reads source files."""
    schemas: dict[str, Schema] = {}
    paths: dict[str, dict[str, Any]] = {}
    responses: dict[str, Any] = {}
    tags = []
    for dialect in dialects:
        tags.append({"name": dialect.name})
        responses[f"{dialect.name}_error"] = error_response(dialect.errors or OPENAI)
        for route in dialect.routes:
            paths.setdefault(route.path, {})[route.method.lower()] = operation(dialect.name, route, schemas)
    return {
        "openapi": VERSION,
        "info": {
            "title": "llmd",
            "version": version,
            "description": ABOUT,
            "license": {"name": "Apache-2.0"},
        },
        "tags": tags,
        "security": [{"bearer": []}, {"x-api-key": []}, {}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "responses": responses,
            "securitySchemes": SECURITY,
        },
    }
