"""Who answers here, at which level, and what it does not do."""

from __future__ import annotations

from aiohttp import web

from llmd.server.http.json_response import json_response
from llmd.server.service import Service

LEVEL = "0.12.11"
"""The version of Ollama whose API this is; clients read it as a plain number to know what they may ask for."""


async def root(_request: web.Request, _service: Service) -> web.Response:
    """Some clients look for these very words."""
    return web.Response(text="Ollama is running")


async def version(_request: web.Request, service: Service) -> web.Response:
    """The level of the API, and llmd's own version."""
    return json_response({"version": LEVEL, "llmd": service.version})


async def status(_request: web.Request, _service: Service) -> web.Response:
    """Nothing leaves this machine."""
    return json_response({"cloud": {"disabled": True, "source": "none"}})


async def no_account(_request: web.Request, _service: Service) -> web.Response:
    """Nobody can be signed in."""
    return _refusal(401, "there are no accounts here: llmd runs models of this machine alone")


async def no_push(_request: web.Request, _service: Service) -> web.Response:
    """There is nowhere to push to."""
    return _refusal(501, "llmd does not push models: copy the model's directory instead")


async def no_blob(_request: web.Request, _service: Service) -> web.Response:
    """No file of a client is kept, so that none is there."""
    return _refusal(404, "there is no such blob")


async def no_blobs(_request: web.Request, _service: Service) -> web.Response:
    """Models are made of directories of this machine, not of files that a client sends."""
    return _refusal(501, "llmd takes no files over HTTP: put the model's directory below its models folder")


def _refusal(code: int, message: str) -> web.Response:
    # Clients try again after a 501 unless they are told that it is no use.
    return json_response({"error": message}, status=code, headers={"x-should-retry": "false"})
