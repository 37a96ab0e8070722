"""Request bodies: size limit, time limit, decoding. They are read as JSON whatever the Content-Type says."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from aiohttp import web

from llmd.requests.fields import BadRequestError
from llmd.server.errors import DeadlineError

MAX_DEPTH = 128
BODY_TIMEOUT_S = web.AppKey("body_timeout_s", float)
"""Seconds in which a body must arrive."""

_decoder = msgspec.json.Decoder()


async def read_object(request: web.Request) -> dict[str, Any]:
    """Return the body as a JSON object; of duplicate keys, the last one counts.

    Raises:
        BadRequestError: it is not a JSON object, is nested too deeply, or is not encoded as its headers
            say.
        DeadlineError: it did not arrive in time.
        web.HTTPRequestEntityTooLarge: it exceeds the limit, counted after gzip decompression.
    """
    try:
        async with asyncio.timeout(request.app.get(BODY_TIMEOUT_S)):
            body = await request.read()
    except TimeoutError as error:
        raise DeadlineError(
            "the body did not arrive in time", hint="send it faster, or raise body_timeout_s"
        ) from error
    except web.RequestPayloadError as error:
        raise BadRequestError(
            "the body cannot be read",
            code="invalid_body",
            hint="check that Content-Encoding names its encoding",
        ) from error
    return decode_object(body)


def decode_object(body: bytes | str) -> dict[str, Any]:
    """Return JSON text as an object; of duplicate keys, the last one counts.

    Raises:
        BadRequestError: it is not a JSON object, or is nested too deeply.
    """
    try:
        value = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequestError(f"the body is not JSON: {error}", code="invalid_json") from error
    if not isinstance(value, dict):
        raise BadRequestError("the body must be a JSON object", code="invalid_json")
    if _depth(value) > MAX_DEPTH:
        raise BadRequestError(f"the body is nested deeper than {MAX_DEPTH} levels", code="invalid_json")
    return value


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
    return depth
