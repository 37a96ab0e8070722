"""One operation of the document for each route."""

from __future__ import annotations

import inspect
import re
from typing import Any

from llmd.api.plugins import Right, Route
from llmd.server.openapi.body_schemas import Schema, body_schema

JSON = "application/json"
WEBSOCKET = "websocket"
STREAMS = {
    "text/event-stream": "server-sent events",
    "application/x-ndjson": "lines of JSON",
}
_RIGHTS: dict[Right, str] = {
    "none": "Needs no key.",
    "use": "Needs the right to use models.",
    "manage": "Needs the right to manage the daemon.",
}


def operation(tag: str, route: Route, schemas: dict[str, Schema]) -> dict[str, Any]:
    """Return the operation of a route and add the schemas that it refers to.

    Args:
        tag: the name of its dialect.
        route: the route.
        schemas: schemas by name, which this adds to.
    """
    described: dict[str, Any] = {
        "operationId": operation_id(route),
        "tags": [tag],
        "summary": _summary(route),
        "description": _RIGHTS[route.right],
        "x-llmd-right": route.right,
        "parameters": _parameters(route),
        "responses": _replies(route) | {"default": {"$ref": f"#/components/responses/{tag}_error"}},
    }
    if route.right == "none":
        described["security"] = []
    if route.body:
        schema = body_schema(route.body, tag, schemas)
        content = {JSON: {"schema": schema}}
        described["requestBody"] = {"required": "required" in schema, "content": content}
    return described


def operation_id(route: Route) -> str:
    """Return a name that is unique among routes: ``post_v1_chat_completions``."""
    return re.sub(r"[^a-z0-9]+", "_", f"{route.method.lower()}{route.path.lower()}").strip("_")


def _summary(route: Route) -> str:
    """Return the first sentences of the handler's docstring."""
    text = (inspect.getdoc(route.handler) or "").partition("\n\n")[0]
    return " ".join(text.replace("``", "`").split())


def _parameters(route: Route) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": name, "in": "query", "required": False, "schema": {"type": "string"}} for name in route.query
    ]
    if route.path.endswith("/{id}"):
        words = "The rest of the path, slashes included."
        found.append(
            {"name": "id", "in": "path", "required": True, "description": words, "schema": {"type": "string"}}
        )
    return found


def _replies(route: Route) -> dict[str, Any]:
    if not route.replies:
        return {}
    if route.replies == (WEBSOCKET,):
        return {"101": {"description": "The connection becomes a WebSocket."}}
    return {"200": {"description": _reply_words(route), "content": {kind: {} for kind in route.replies}}}


def _reply_words(route: Route) -> str:
    streams = [STREAMS[kind] for kind in route.replies if kind in STREAMS]
    if not streams:
        return "The answer."
    if len(streams) == len(route.replies):
        return f"A stream of {streams[0]}."
    return f"The answer, whole or streamed as {streams[0]}: `stream` in the body decides."
