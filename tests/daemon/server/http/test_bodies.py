from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from llmd.requests.fields import BadRequestError
from llmd.server.http.bodies import MAX_DEPTH, decode_object, read_object

LIMIT = 10_000


async def reply_to(body: bytes, headers: dict[str, str] | None = None) -> dict[str, Any]:
    """Return a server's reply to a body."""

    async def echo(request: web.Request) -> web.Response:
        try:
            return web.json_response({"value": await read_object(request)})
        except BadRequestError as error:
            return web.json_response({"code": error.code})
        except web.HTTPRequestEntityTooLarge:
            return web.json_response({"code": "too large"})

    app = web.Application(client_max_size=LIMIT)
    app.router.add_post("/", echo)
    async with TestClient(TestServer(app)) as client, client.post("/", data=body, headers=headers) as reply:
        answer: dict[str, Any] = await reply.json()
        return answer


@pytest.mark.parametrize(
    "content_type", ["application/x-www-form-urlencoded", "text/plain", "application/json"]
)
async def test_body_is_json_whatever_its_type_says(content_type: str) -> None:
    assert await reply_to(b'{"a": 1, "a": 2}', {"Content-Type": content_type}) == {"value": {"a": 2}}


async def test_gzip_is_inflated_and_its_limit_is_that_of_the_text() -> None:
    headers = {"Content-Encoding": "gzip"}
    assert await reply_to(gzip.compress(b'{"a": 1}'), headers) == {"value": {"a": 1}}
    bomb = gzip.compress(json.dumps({"a": "x" * LIMIT}).encode())
    assert len(bomb) < LIMIT
    assert await reply_to(bomb, headers) == {"code": "too large"}


async def test_body_that_is_not_compressed_as_it_says_is_refused() -> None:
    assert await reply_to(b'{"a": 1}', {"Content-Encoding": "gzip"}) == {"code": "invalid_body"}


def nested(depth: int) -> bytes:
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"{'a': 1}",
        b"\xff",
        b'{"a": "\xe9"}',
        nested(MAX_DEPTH + 1),
        nested(4000),
    ],
)
async def test_what_is_no_plain_json_object_is_refused(body: bytes) -> None:
    assert await reply_to(body) == {"code": "invalid_json"}


async def test_deep_objects_pass_up_to_the_limit() -> None:
    assert "value" in await reply_to(nested(MAX_DEPTH))


def test_text_of_a_message_is_decoded_like_a_body() -> None:
    assert decode_object('{"a": 1}') == {"a": 1}
    with pytest.raises(BadRequestError, match="must be a JSON object"):
        decode_object("[]")
