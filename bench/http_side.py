"""A side that is measured through its HTTP API: what a client sees of a server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

import aiohttp

LIMIT_S = 600.0
DATA, DONE = b"data: ", b"[DONE]"


@dataclass(frozen=True)
class Stream:
    """When a streamed answer arrived, in seconds after its request."""

    first_s: float
    last_s: float
    events: int


class HttpSide:
    """A running server, asked for completions of token ids, greedily and of full length."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self._url = url

    def prefill_rate(self, prompt: Sequence[int]) -> float:
        """Return the tokens per second of a prompt: its length over the time to the first token."""
        (stream,) = asyncio.run(self._answers([prompt], 1))
        return len(prompt) / stream.first_s

    def decode_rate(self, prompts: Sequence[Sequence[int]], steps: int) -> float:
        """Return the tokens per second of concurrent answers: the sum of their own rates after the first
        token.

        Raises:
            RuntimeError: an answer ended early, or arrived in too few parts to be timed.
        """
        streams = asyncio.run(self._answers(prompts, steps + 1))
        for stream in streams:
            if stream.events <= steps / 2:
                raise RuntimeError(f"{self.name} sent {steps + 1} tokens in {stream.events} events")
        return sum(steps / (stream.last_s - stream.first_s) for stream in streams)

    async def _answers(self, prompts: Sequence[Sequence[int]], max_tokens: int) -> list[Stream]:
        timeout = aiohttp.ClientTimeout(total=LIMIT_S)
        async with aiohttp.ClientSession(self._url, timeout=timeout) as session:
            return await asyncio.gather(*(self._answer(session, prompt, max_tokens) for prompt in prompts))

    async def _answer(self, session: aiohttp.ClientSession, prompt: Sequence[int], max_tokens: int) -> Stream:
        body = {
            "prompt": list(prompt),
            "max_tokens": max_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
        }
        began = time.perf_counter()
        async with session.post("/v1/completions", json=body) as response:
            if response.status != HTTPStatus.OK:
                raise RuntimeError(f"{self.name} answered {response.status}: {await response.text()}")
            parts = (line async for line in response.content if _has_choice(line))
            times = [time.perf_counter() - began async for _ in parts]
        if not times:
            raise RuntimeError(f"{self.name} ended an answer without a token")
        return Stream(times[0], times[-1], len(times))


def _has_choice(line: bytes) -> bool:
    """Whether a line of a stream has a part of the answer; usage and keep-alive comments have none."""
    if not line.startswith(DATA) or line.removeprefix(DATA).strip() == DONE:
        return False
    return bool(json.loads(line.removeprefix(DATA)).get("choices"))
