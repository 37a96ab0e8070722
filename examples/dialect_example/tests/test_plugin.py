"""The route answers."""

from __future__ import annotations

import asyncio
import json

from aiohttp.test_utils import make_mocked_request

from llmd_dialect_example.plugin import llmd_dialects


def test_greets_the_name_in_the_query() -> None:
    (dialect,) = llmd_dialects()
    (route,) = dialect.routes()
    request = make_mocked_request(route.method, f"{route.path}?name=Ada")

    async def answered() -> str:
        response = await route.handler(request, None)
        return str(response.text)

    assert json.loads(asyncio.run(answered())) == {"hello": "Ada"}
