from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from llmd.config import TcpAddress, UnixAddress
from llmd.server.http.connections import ConnectionLimits
from llmd.server.http.http_server import http_server
from llmd.server.http.listeners import listen

LIMITS = ConnectionLimits(most=10, headers_s=10.0, write_s=10.0, idle_s=10.0)


async def hello(_request: web.Request) -> web.Response:
    return web.Response(text="hello")


@pytest.fixture
def app() -> web.Application:
    app = web.Application()
    app.router.add_get("/", hello)
    return app


async def test_answers_on_every_socket_until_the_block_ends(app: web.Application, tmp_path: Path) -> None:
    path = tmp_path / "s"
    with listen([UnixAddress(path), TcpAddress("127.0.0.1", 0)]) as listeners:
        async with http_server(app, listeners, None, LIMITS) as connections:
            url = str(listeners[1].address)
            async with aiohttp.ClientSession() as session, session.get(f"http://{url}/") as reply:
                assert await reply.text() == "hello"
                assert connections.open == 1
            unix = aiohttp.UnixConnector(str(path))
            async with aiohttp.ClientSession(connector=unix) as session, session.get("http://llmd/") as reply:
                assert await reply.text() == "hello"
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientConnectorError):
                await session.get(f"http://{url}/")
