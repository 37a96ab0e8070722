"""The clients of a soak. Each sends its next request as soon as the last has ended."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import aiohttp

from bench.soak_mix import Asked, Kind

READ_BYTES = 1 << 14
KEPT_SHARE = 0.5
"""Share of requests that keep their connection open."""
LATE_S = (0.5, 4.0)
"""How long a slow reader waits before it reads."""


class Clients:
    """Concurrent clients and their results.

    Attributes:
        ended: requests that ended as expected, by kind.
        faults: descriptions of all others.
        compared: answers that were compared with an earlier one to the same request.
    """

    def __init__(self, socket: Path, model: str, mix: Mapping[str, Kind], seed: int) -> None:
        self.ended: Counter[str] = Counter()
        self.faults: list[str] = []
        self.compared = 0
        self._texts: dict[str, str] = {}
        self._socket = socket
        self._model = model
        self._mix = mix
        self._seed = seed

    @property
    def num_asked(self) -> int:
        """Requests that have ended, as expected or not."""
        return self.ended.total() + len(self.faults)

    async def run(self, count: int, ends: Callable[[], bool]) -> None:
        """Run ``count`` clients until ``ends`` returns true; running requests are finished."""
        async with asyncio.TaskGroup() as group:
            for place in range(count):
                group.create_task(self._ask(Random(self._seed + place), ends), name=f"client {place}")

    async def _ask(self, random: Random, ends: Callable[[], bool]) -> None:
        names, shares = [*self._mix], [kind.share for kind in self._mix.values()]
        connector = aiohttp.UnixConnector(str(self._socket))
        async with aiohttp.ClientSession("http://localhost", connector=connector) as session:
            while not ends():
                (name,) = random.choices(names, shares)
                await self._one(session, random, name, self._mix[name])

    async def _one(self, session: aiohttp.ClientSession, random: Random, name: str, kind: Kind) -> None:
        asked = kind.make(random)
        try:
            fault = await self._conduct(session, random, asked, kind.behaves)
        except aiohttp.ClientConnectorError:  # the daemon is gone
            raise
        except (aiohttp.ClientError, asyncio.IncompleteReadError) as error:
            fault = repr(error)
        if fault:
            self.faults.append(f"{name}: {fault}")
        else:
            self.ended[name] += 1

    async def _conduct(
        self, session: aiohttp.ClientSession, random: Random, asked: Asked, behaves: str
    ) -> str:
        """Send a request and behave as its kind requires; return what was wrong, or an empty text."""
        if behaves == "leaves at once":
            await self._leave_at_once(session, random, asked)
            return ""
        async with self._asked(session, random, asked) as response:
            if response.status != asked.status:
                return f"status {response.status}: {await response.text()}"
            if behaves == "leaves":
                await response.content.readexactly(random.randrange(200, 20_000))
                response.close()
                return ""
            if behaves == "reads late":
                await asyncio.sleep(random.uniform(*LATE_S))
            return self.judge(asked, await response.read())

    @asynccontextmanager
    async def _asked(
        self, session: aiohttp.ClientSession, random: Random, asked: Asked
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        body = {"model": self._model, **asked.body}
        headers = {} if random.random() < KEPT_SHARE else {"Connection": "close"}
        async with session.post(
            asked.path, json=body, headers=headers, read_bufsize=READ_BYTES, timeout=aiohttp.ClientTimeout()
        ) as response:
            yield response

    async def _leave_at_once(self, session: aiohttp.ClientSession, random: Random, asked: Asked) -> None:
        """Disconnect before there is a response, usually while the request is still queued."""

        async def ask() -> None:
            async with self._asked(session, random, asked):
                pass

        task = asyncio.Task(ask(), name="leaves at once")
        await asyncio.wait([task], timeout=random.uniform(0, 0.2))
        task.cancel()
        await asyncio.wait([task])

    def judge(self, asked: Asked, content: bytes) -> str:
        """Return what is wrong with a response: it is incomplete, or differs from an earlier one to the same
        request.
        """
        if asked.end not in content[-4096:]:
            return f"ends with {content[-300:]!r}"
        if asked.name:
            text = text_of(content)
            self.compared += asked.name in self._texts
            if self._texts.setdefault(asked.name, text) != text:
                return f"{asked.name} got {text!r} after {self._texts[asked.name]!r}"
        return ""


def text_of(stream: bytes) -> str:
    """Return the text of a streamed completion."""
    events = [line[6:] for line in stream.splitlines() if line.startswith(b"data: {")]
    return "".join(choice["text"] for event in events for choice in json.loads(event)["choices"])
