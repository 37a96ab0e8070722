"""Runs one generation request: prompts in, pieces of text out. Independent of dialect and transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from msgspec import Struct, structs

from llmd.api.errors import ContextLengthError, GrammarError, RequestError
from llmd.api.messages import BeamParams, Grammar, Submit
from llmd.api.results import BeamOutput, Logprobs, TokenOutput
from llmd.chat.answers.answer_text import AnswerText, Piece
from llmd.chat.answers.found_tokens import found_tokens
from llmd.chat.model_text import ChatPrompt, ModelText
from llmd.requests.ending import EndChoice
from llmd.requests.named_tokens import NO_TOKENS, NamedTokens
from llmd.requests.sampling import SamplingChoice
from llmd.server.engines.mailbox import Mailbox
from llmd.server.engines.supervisor import UNNUMBERED, Supervisor
from llmd.server.engines.token_stream import TokenStream
from llmd.server.generation.timing import Timing
from llmd.server.request_record import current_record


class GenerationRequest(Struct, frozen=True):
    """Prompts as tokens, each answered ``n`` times.

    ``priority``, ``cache_salt`` and ``prompt_logprobs`` are described in `llmd.api.messages.Submit`.
    """

    prompts: tuple[tuple[int, ...], ...]
    sampling: SamplingChoice
    end: EndChoice
    n: int = 1
    skip_special: bool = True
    at_text_start: bool = True
    """Answers are separate texts, as in a chat; otherwise they continue their prompt."""
    param: str = "messages"
    """The request field that contains the prompts."""
    window: int | None = None
    """The most tokens of prompt and answer together, if fewer than the model allows."""
    truncated_tokens: int = 0
    """How many tokens were cut from the prompt, which the request allowed."""
    grammar: Grammar | None = None
    """Constrains every answer."""
    grammar_param: str = "response_format"
    """The request field that contains the grammar."""
    priority: int = 0
    cache_salt: str = ""
    conversation: ChatPrompt | None = None
    """The chat that the prompt was rendered from; its answers may contain reasoning and tool calls."""
    prompt_logprobs: int | None = None
    together: bool = False
    """All answers together take one place in the queue."""
    beams: BeamParams | None = None
    """Find the answers by beam search, which may find fewer than ``n``."""

    def with_prompts(self, prompts: tuple[tuple[int, ...], ...]) -> GenerationRequest:
        """Return the same request with other prompts."""
        return structs.replace(self, prompts=prompts)


class Usage(Struct):
    """Exact token counts of a request."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    """The prompt tokens that were found in the prefix cache."""
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    """Part of the completion tokens."""


class Generation:
    """An async context manager for running answers; leaving it cancels running answers and closes ``held``.

    Answer ``prompt index * n + i`` is choice ``i`` of a prompt.
    """

    def __init__(
        self,
        request: GenerationRequest,
        text: ModelText,
        window: int,
        vocab_size: int,
        *,
        longer_window: str = "",
        adapter: str = "",
    ) -> None:
        """``window`` is how many tokens prompt and answer may have together, ``longer_window`` as in
        `ContextLengthError`, ``adapter`` as in `Submit`.

        Raises:
            ContextLengthError: a prompt leaves no room for an answer.
            RequestError: a prompt or a stop string is empty, or a prompt or bias names a token outside the
                vocabulary.
        """
        self.window = min(window, request.window or window)
        longer = f"raise num_ctx (at most {window})" if self.window < window else longer_window
        for prompt in request.prompts:
            _check_tokens(prompt, vocab_size, request.param)
            _check_length(request, len(prompt), self.window, longer)
        _check_ids(request.sampling, vocab_size)
        self.request = request
        self._adapter = adapter
        self.usage = Usage(prompt_tokens=sum(len(prompt) for prompt in request.prompts))
        self.timing = Timing()
        self.held = ExitStack()
        self._text = text
        self._answers = {
            index: self._answer(request.prompts[index // request.n])
            for index in range(len(request.prompts) * request.n)
        }
        self._per_prompt = request.n if request.beams is None else 1  # sequences, not answers
        self._unbegun = set(range(0, len(request.prompts) * self._per_prompt, self._per_prompt))
        self._prompts: dict[int, tuple[Logprobs, ...] | None] = {}
        self._stream: TokenStream | Mailbox[BeamOutput] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.close()
        self.held.close()

    async def pieces(self, supervisor: Supervisor) -> AsyncIterator[tuple[int, Piece]]:
        """Run all answers; yield each piece with the index of its answer.

        Raises:
            LlmdError: the engine could not finish an answer; the others are cancelled.
        """
        scores = self.request.prompt_logprobs is not None
        if self.request.end.max_tokens == 0 and not scores:
            for index in self._answers:
                yield index, Piece("", finish="length")
            return
        record = current_record()
        self.timing.submit()
        if self.request.grammar is not None:
            supervisor.set_vocabulary(self._text.grammars.vocabulary)
        requests = self._submits(await self._named_tokens())
        if self.request.beams is None:
            self._stream = supervisor.open(requests, record, together=self.request.together)
        else:
            self._stream = supervisor.search(requests, record)
        while self._answers:
            for index, token in await self._next(self._stream):
                if scores:
                    self._prompts.setdefault(index, token.prompt)
                piece = self._feed(index, token) if index in self._answers else None
                if piece is None:
                    continue
                if piece.finish is not None:
                    record.finish = piece.finish
                    self._end(index)
                yield index, piece

    async def _next(self, stream: TokenStream | Mailbox[BeamOutput]) -> list[tuple[int, TokenOutput]]:
        """Return the next token with the index of its answer; for a search, all tokens of all answers."""
        try:
            index, output = await stream.next()
        except GrammarError as error:  # the grammar became too complex during generation
            error.param = self.request.grammar_param
            raise
        self.timing.token()
        self._count_cached(stream, index)
        return [(index, output)] if isinstance(output, TokenOutput) else self._found(index, output)

    def _found(self, place: int, output: BeamOutput) -> list[tuple[int, TokenOutput]]:
        """Return the tokens of a prompt's answers; stop waiting for answers that the search did not find."""
        first, n = place * self.request.n, self.request.n
        for missing in range(first + len(output.hypotheses), first + n):
            del self._answers[missing]
        return [
            (index, token)
            for index, found in enumerate(output.hypotheses, first)
            for token in found_tokens(output.request_id, found)
        ]

    def _end(self, index: int) -> None:
        """Drop a complete answer and cancel its sequence, which may still run."""
        del self._answers[index]
        if isinstance(self._stream, TokenStream):
            self._stream.cancel(index)

    def _count_cached(self, stream: TokenStream | Mailbox[BeamOutput], index: int) -> None:
        """Count a prompt's cached tokens only for its first choice:
        the other choices find what that one computed.
        """
        if index in self._unbegun:
            self._unbegun.remove(index)
            self.usage.cached_tokens += stream.cached_tokens.get(index, 0)

    def _feed(self, index: int, token: TokenOutput) -> Piece | None:
        """Return the next piece of an answer;
        if requested, the first piece has the logprobs of the prompt.
        """
        if self.request.end.max_tokens == 0:  # only the prompt is scored
            return Piece("", finish="length", prompt=token.prompt)
        answer = self._answers[index]
        before = answer.reasoning_tokens
        piece = answer.feed(token)
        self.usage.completion_tokens += 1
        self.usage.reasoning_tokens += answer.reasoning_tokens - before
        if piece is None or self._prompts.get(index) is None:
            return piece
        prompt, self._prompts[index] = self._prompts[index], None
        return structs.replace(piece, prompt=prompt)

    def _answer(self, prompt: tuple[int, ...]) -> AnswerText:
        conversation = self.request.conversation
        return AnswerText(
            self._text.tokenizer,
            self.request.end.strings or self._text.stops,
            skip_special=self.request.skip_special,
            at_text_start=self.request.at_text_start,
            shows_stop=self.request.end.shows_stop,
            reader=self._text.answer_reader(conversation, prompt) if conversation is not None else None,
        )

    async def _named_tokens(self) -> NamedTokens:
        sampling, text = self.request.sampling, self._text
        if not sampling.names_tokens:
            return NO_TOKENS
        return await asyncio.to_thread(
            lambda: sampling.tokens(text.tokenizer, text.grammars.vocabulary.tokens)
        )

    def _submits(self, tokens: NamedTokens) -> list[Submit]:
        """Return a message for each sequence or each search. The supervisor numbers them."""
        sampling, defaults = self.request.sampling, self._text.defaults
        seed = sampling.drawn_seed()
        return [
            Submit(
                UNNUMBERED,
                prompt,
                sampling.params(defaults, seed, choice, tokens),
                self.request.end.stop_params(self.window - len(prompt), self._text.stop_ids),
                grammar=self.request.grammar,
                priority=self.request.priority,
                cache_salt=self.request.cache_salt,
                adapter=self._adapter,
                prompt_logprobs=self.request.prompt_logprobs,
                beams=self.request.beams,
            )
            for prompt in self.request.prompts
            for choice in range(self._per_prompt)
        ]


def _check_tokens(prompt: tuple[int, ...], vocab_size: int, param: str) -> None:
    if not prompt:
        raise RequestError("the prompt has no tokens", param=param, hint="send at least one token")
    if max(prompt) >= vocab_size:
        raise RequestError(
            f"the prompt has the token id {max(prompt)}, but the vocabulary ends at {vocab_size - 1}",
            param=param,
            hint="use the tokenizer of this model",
        )


def _check_ids(sampling: SamplingChoice, vocab_size: int) -> None:
    named = {"logit_bias": [i for i, _ in sampling.logit_bias], "allowed_token_ids": sampling.allowed_ids}
    for param, ids in named.items():
        largest = max(ids, default=0)
        if largest >= vocab_size:
            raise RequestError(
                f"{param} names the token id {largest}, but the vocabulary ends at {vocab_size - 1}",
                param=param,
                hint="use the tokenizer of this model",
            )


def _check_length(request: GenerationRequest, prompt_len: int, window: int, longer: str) -> None:
    needed = 0 if request.end.max_tokens == 0 else 1
    if prompt_len + needed > window:
        raise ContextLengthError(prompt_len, window, param=request.param, longer_window=longer)
