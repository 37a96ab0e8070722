"""``GET /``: the web page for browsers, and a text that clients of Ollama look for; the page's files."""

from __future__ import annotations

from aiohttp import web

from llmd.server.http.error_shapes import error_response
from llmd.server.http.problems import unknown_url
from llmd.server.page.page_files import START, PageFile, page_files
from llmd.server.page.page_headers import HEADERS, is_unchanged, prefers_html
from llmd.server.service import Service

FOLDER = "/page/"
RUNNING = "Ollama is running"


async def root(request: web.Request, service: Service) -> web.Response:
    """Return the web page to browsers, and `Ollama is running` to other clients, which check for it."""
    if prefers_html(request.headers.get("Accept", "")):
        files = await service.in_thread(page_files)
        return _reply(request, files[START], {"Vary": "Accept"})
    return web.Response(text=RUNNING, headers={"Vary": "Accept"})


async def file(request: web.Request, service: Service) -> web.Response:
    """Return a file of the web page: a script, a style or an icon."""
    files = await service.in_thread(page_files)
    found = files.get(request.path.removeprefix(FOLDER))
    if found is None:
        return error_response(request, unknown_url(request.path))
    return _reply(request, found, {})


def _reply(request: web.Request, found: PageFile, headers: dict[str, str]) -> web.Response:
    headers = {**HEADERS, **headers, "ETag": found.etag}
    if is_unchanged(request.headers.get("If-None-Match", ""), found.etag):
        return web.Response(status=304, headers=headers)
    return web.Response(body=found.content, headers=headers | {"Content-Type": found.type})
