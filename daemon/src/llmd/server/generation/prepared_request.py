"""A request that was read: its model, how it becomes tokens, and the headers of the reply."""

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
    """A generation request in the form that all dialects share."""

    model: AnsweringModel
    ignored: tuple[str, ...]
    """Names of fields that were not read."""
    prepare: Callable[[ReadyModel], Awaitable[GenerationRequest]]
    """Tokenizes the prompts once the model is loaded."""
    keep_alive_s: float | None = None
    """Seconds that the model stays loaded after this request; None: unchanged."""

    def headers(self) -> dict[str, str]:
        """Return the headers of the reply, whether it is streamed or not."""
        return reply_headers(self.model.name, self.ignored)

    async def start(self) -> tuple[ReadyModel, Generation]:
        """Wait for the model, then return the generation, which keeps the model in use until it is left.

        Raises:
            LlmdError: the model cannot answer, not this request, or not in time.
            BusyError: too many wait for the model.
        """
        with ExitStack() as held:
            held.enter_context(self.model.in_use(self.keep_alive_s))
            ready, request = await wait_for(self.model, self._request)
            generation = Generation(
                request,
                ready.text,
                ready.window,
                ready.loaded.vocab_size,
                longer_window=ready.loaded.longer_window,
                adapter=ready.adapter,
            )
            generation.held.push(held.pop_all())
        return ready, generation

    async def _request(self, ready: ReadyModel) -> GenerationRequest:
        check_generates(self.model.name, ready.loaded)
        return await _bound(ready, await self.prepare(ready))


async def wait_for(
    model: AnsweringModel, prepare: Callable[[ReadyModel], Awaitable[Prepared]]
) -> tuple[ReadyModel, Prepared]:
    """Take a place in the queue, wait for the model, and prepare the request.
    The caller keeps the model in use.

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
    """Return the headers with the model's name and the names of fields that were not read."""
    headers = {"x-llmd-model": quote(name, safe="/:")}
    if ignored:
        headers["x-llmd-ignored"] = ", ".join(map(quote, ignored))[:HEADER_LEN]
    return headers


def truncation_header(truncated_tokens: int) -> dict[str, str]:
    """Return the header with the number of tokens that were cut from the prompt; empty if none were."""
    return {"x-llmd-truncated": str(truncated_tokens)} if truncated_tokens else {}


async def _bound(ready: ReadyModel, request: GenerationRequest) -> GenerationRequest:
    """Return the request with the grammar of its whole answer, checked.

    Raises:
        GrammarError: the grammar cannot be followed.
        RequestError: the request requires a tool call that no grammar can express.
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
