"""A request that was read: its model, how it becomes tokens, and what the reply says beside the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import TypeVar
from urllib.parse import quote

from msgspec import Struct, structs

from llmd.api.errors import GrammarError
from llmd.api.messages import Grammar
from llmd.chat.model_text import ModelText
from llmd.requests.model_kind import check_generates
from llmd.server.generation.generation import Generation, GenerationRequest
from llmd.server.models.derived_model import AnsweringModel
from llmd.server.models.served_model import ReadyModel
from llmd.server.request_record import current_record

HEADER_LEN = 1000
Prepared = TypeVar("Prepared")


class PreparedRequest(Struct, frozen=True):
    """What every dialect runs in the same way. ``ignored`` are names of fields that nobody read.

    ``keep_alive_s`` is how long the model stays loaded after this request, None for what held before.
    """

    model: AnsweringModel
    ignored: tuple[str, ...]
    prepare: Callable[[ReadyModel], Awaitable[GenerationRequest]]
    keep_alive_s: float | None = None

    def headers(self) -> dict[str, str]:
        """Headers of the reply, whole or streamed."""
        return reply_headers(self.model.name, self.ignored)

    async def start(self) -> tuple[ReadyModel, Generation]:
        """Wait for the model, then make the generation, which holds the model until it is left.

        Raises:
            LlmdError: the model cannot answer, not this request, or not in time.
            BusyError: too many wait for the model.
        """
        with ExitStack() as held:
            held.enter_context(self.model.in_use(self.keep_alive_s))
            ready, request = await wait_for(self.model, self._request)
            generation = Generation(request, ready.text, ready.window, ready.loaded.vocab_size)
            generation.held.push(held.pop_all())
        return ready, generation

    async def _request(self, ready: ReadyModel) -> GenerationRequest:
        check_generates(self.model.name, ready.loaded)
        return await _bound(ready, await self.prepare(ready))


async def wait_for(
    model: AnsweringModel, prepare: Callable[[ReadyModel], Awaitable[Prepared]]
) -> tuple[ReadyModel, Prepared]:
    """Wait, with a place in the queue, until a model can answer and its engine can be asked. The caller holds the model.

    Raises:
        LlmdError: the model cannot answer, not this request, or not in time.
        BusyError: too many wait for the model.
    """
    record = current_record()
    with model.supervisor.reserve(record):
        async with record.in_time():
            ready = await model.ready()
            return ready, await prepare(ready)


def reply_headers(name: str, ignored: tuple[str, ...]) -> dict[str, str]:
    """The model that answers, and the names of fields that nobody read."""
    headers = {"x-llmd-model": quote(name, safe="/:")}
    if ignored:
        headers["x-llmd-ignored"] = ", ".join(map(quote, ignored))[:HEADER_LEN]
    return headers


def truncation_header(truncated_tokens: int) -> dict[str, str]:
    """How much was cut of what was sent, where the request allowed it and it was."""
    return {"x-llmd-truncated": str(truncated_tokens)} if truncated_tokens else {}


async def _bound(ready: ReadyModel, request: GenerationRequest) -> GenerationRequest:
    """The request with the grammar of its whole answer, which was tried.

    Raises:
        GrammarError: it cannot be followed.
        RequestError: a call is required that cannot be bound.
    """
    conversation = request.conversation
    if request.grammar is None and (conversation is None or not conversation.binds_answers):
        return request
    try:
        grammar = await asyncio.get_running_loop().run_in_executor(
            ready.text.grammars.threads, _answer_grammar, ready.text, request
        )
    except GrammarError as error:
        error.param = error.param or request.grammar_param
        raise
    return structs.replace(request, grammar=grammar)


def _answer_grammar(text: ModelText, request: GenerationRequest) -> Grammar | None:
    grammar = request.grammar
    if request.conversation is not None:
        grammar = text.answer_grammar(grammar, request.conversation, request.prompts[0])
    if grammar is not None:
        text.grammars.check(grammar)
    return grammar
