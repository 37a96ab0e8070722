from __future__ import annotations

from llmd.server.http.line_stream import LineStream
from tests.serving.streams import NEVER_S, asked


async def test_each_value_is_one_line_of_json() -> None:
    async def write(lines: LineStream) -> None:
        await lines.send({"text": "a\nb"})
        await lines.send({"text": "é\u2028"})
        await lines.end()

    async with asked(lambda request: LineStream(request, {"x-test": "yes"}, NEVER_S), write) as reply:
        assert reply.headers["Content-Type"] == "application/x-ndjson"
        assert reply.headers["x-test"] == "yes"
        assert await reply.read() == '{"text":"a\\nb"}\n{"text":"é\\u2028"}\n'.encode()
