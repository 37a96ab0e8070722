"""Runs a request and writes its response, whole or streamed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from aiohttp import web

from llmd.api.problem import Problem
from llmd.chat.answers.answer_text import AnswerToken
from llmd.server.dialects.openai.responses.output import Output
from llmd.server.dialects.openai.responses.request import ResponsesRequest
from llmd.server.dialects.openai.responses.response import Event, Response, error_event
from llmd.server.generation.generation import Generation, Usage
from llmd.server.generation.logprobs import logprob_entries
from llmd.server.generation.prepared_request import PreparedRequest, truncation_header
from llmd.server.http.event_stream import EventStream
from llmd.server.http.json_response import json_response
from llmd.server.models.served_model import ReadyModel
from llmd.server.service import Service


class Reply:
    """One answer. ``model`` is the name in the request. ``body`` is the response once it is complete."""

    def __init__(self, prepared: PreparedRequest, asked: ResponsesRequest, model: str) -> None:
        self.body: dict[str, Any] | None = None
        self._prepared = prepared
        self.asked = asked
        self._model = model
        self._response: Response | None = None

    async def write(self, request: web.Request, service: Service, *, stream: bool) -> web.StreamResponse:
        """Send the response."""
        if stream:
            return await self._stream(request, service)
        ready, generation, response = await self._start()
        async with generation:
            async for _, piece in generation.pieces(ready.supervisor):
                response.add(piece)
        self.body = response.body(generation.usage)
        return json_response(
            self.body,
            headers=self._prepared.headers() | truncation_header(generation.request.truncated_tokens),
        )

    async def _stream(self, request: web.Request, service: Service) -> web.StreamResponse:
        headers, ping_s = self._prepared.headers(), service.config.limits.ping_s
        async with EventStream(request, headers, ping_s, named=True, failed=self.failed) as events:
            started = await self._start()
            events.response.headers.update(truncation_header(started[1].request.truncated_tokens))
            async with aclosing(self._answer(*started)) as answer:
                async for event in answer:
                    await events.send(event)
            await events.end()
        return events.response

    async def events(self) -> AsyncGenerator[Event]:
        """Yield the events of the answer.

        Raises:
            LlmdError: it could not be finished; `failed` returns the last event.
        """
        async for event in self._answer(*await self._start()):
            yield event

    async def prepare(self) -> AsyncGenerator[Event]:
        """Compute the prompt, so that what continues it starts sooner; yield the events of an empty answer.

        Raises:
            LlmdError: the prompt could not be computed; `failed` returns the last event.
        """
        ready, generation, response = await self._start()
        async with generation:
            async for _ in generation.pieces(ready.supervisor):
                pass
        for event in response.opening():
            yield event
        yield self._ended(response, Usage(generation.usage.prompt_tokens, generation.usage.cached_tokens))

    def failed(self, problem: Problem) -> Event:
        """Return the last event of a stream that fails."""
        return error_event(problem) if self._response is None else self._response.failed(problem)

    @property
    def has_begun(self) -> bool:
        """Whether an event of the response may have been sent."""
        return self._response is not None and self._response.has_begun

    async def _answer(
        self, ready: ReadyModel, generation: Generation, response: Response
    ) -> AsyncGenerator[Event]:
        async with generation:
            async for _, piece in generation.pieces(ready.supervisor):
                for event in response.events(piece):
                    yield event
        yield self._ended(response, generation.usage)

    def _ended(self, response: Response, usage: Usage) -> Event:
        last = response.end(usage)
        self.body = last["response"]
        return last

    async def _start(self) -> tuple[ReadyModel, Generation, Response]:
        ready, generation = await self._prepared.start()
        asked, sampling = self.asked, generation.request.sampling

        def entries(tokens: tuple[AnswerToken, ...]) -> list[dict[str, Any]]:
            return [] if sampling.logprobs is None else logprob_entries(ready.text.tokenizer, tokens)

        summarized = asked.question.reasoning.summary is not None
        output = Output(asked.question.tools.call, entries, summarized=summarized)
        drawn = sampling.params(ready.text.defaults, seed=0, choice=0)
        echo = {**asked.echo, "temperature": drawn.temperature, "top_p": drawn.top_p}
        self._response = Response(self._model, echo, output)
        return ready, generation, self._response
