"""Health and version of the API, and routes that llmd does not support."""

from __future__ import annotations

from aiohttp import web

from llmd.server.http.json_response import json_response
from llmd.server.service import Service

LEVEL = "0.12.11"
"""The version of Ollama's API that is served; clients parse it to know which features they can use."""


async def version(_request: web.Request, service: Service) -> web.Response:
    """Return the version of the API, and llmd's own."""
    return json_response({"version": LEVEL, "llmd": service.version})


async def status(_request: web.Request, _service: Service) -> web.Response:
    """Report that no cloud is used."""
    return json_response({"cloud": {"disabled": True, "source": "none"}})


async def no_account(_request: web.Request, _service: Service) -> web.Response:
    """Refuse to sign in: there are no accounts."""
    return _refusal(401, "there are no accounts: llmd runs models on this machine only")


async def no_push(_request: web.Request, _service: Service) -> web.Response:
    """Refuse to push."""
    return _refusal(501, "llmd does not push models: copy the model's directory instead")


async def no_blob(_request: web.Request, _service: Service) -> web.Response:
    """Report that a file does not exist, since files of clients are not stored."""
    return _refusal(404, "there is no such blob")


async def no_blobs(_request: web.Request, _service: Service) -> web.Response:
    """Refuse to store a file: models come from directories on this machine, not from uploads."""
    return _refusal(
        501, "llmd does not accept files over HTTP: put the model's directory below its models folder"
    )


def _refusal(code: int, message: str) -> web.Response:
    # Clients retry after a 501 unless this header says not to.
    return json_response({"error": message}, status=code, headers={"x-should-retry": "false"})
