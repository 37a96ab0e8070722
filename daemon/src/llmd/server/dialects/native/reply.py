"""JSON replies of llmd's own routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from llmd.server.http.json_response import json_response

SCHEMA = 1
"""Version of the forms of all replies."""


def reply(fields: Mapping[str, Any]) -> web.Response:
    """Return a reply with these fields and the version of its form."""
    return json_response({"schema": SCHEMA, **fields})
