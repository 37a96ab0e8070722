"""Generates one answer: takes a prompt, yields tokens with their text."""

from __future__ import annotations

import operator
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Literal, cast

from llmd.api.errors import ContextLengthError, RequestError
from llmd.api.messages import Loaded
from llmd.api.results import TokenOutput
from llmd.api.samplers import SamplingParams
from llmd.chat.answers.answer_text import AnswerText
from llmd.chat.model_text import ChatPrompt, ModelText
from llmd.embedded.generated import GeneratedToken, GenerationOptions, Prompt
from llmd.embedded.options import read_options
from llmd.embedded.token_queue import TokenQueue
from llmd.requests.named_tokens import NO_TOKENS
from llmd.requests.sampling import SamplingChoice


def encode(text: ModelText, prompt: Prompt, system: str | None = None) -> tuple[int, ...]:
    """Return the token ids of a prompt.
    The chat template applies to a question or a conversation, not to token ids.

    Raises:
        TemplateError: the model has no chat template, or it is broken.
        RequestError: ``system`` was given for a prompt other than a question, or messages are malformed.
    """
    if isinstance(prompt, str):
        instructions = [{"role": "system", "content": system}] if system else []
        return text.encode_chat(ChatPrompt([*instructions, {"role": "user", "content": prompt}]))
    if system is not None:
        raise RequestError(
            "system is allowed only if the prompt is a question",
            param="system",
            hint='begin the conversation with {"role": "system", "content": …}',
        )
    if len(prompt) and isinstance(prompt[0], Mapping):
        return text.encode_chat(ChatPrompt(cast("Sequence[dict[str, Any]]", prompt)))
    return token_ids(cast("Sequence[int]", prompt))


def token_ids(given: Sequence[int]) -> tuple[int, ...]:
    """Return token ids as Python integers; the caller may pass NumPy integers.

    Raises:
        RequestError: one of them is not an integer.
    """
    try:
        return tuple(map(operator.index, given))
    except TypeError as error:
        raise RequestError(
            f"a prompt is a text, messages or token ids: {error}",
            param="prompt",
            hint='pass "…", [{"role": "user", "content": "…"}] or [1, 2, 3]',
        ) from error


def generate(
    queue: TokenQueue, text: ModelText, loaded: Loaded, prompt: tuple[int, ...], options: GenerationOptions
) -> Generator[GeneratedToken]:
    """Yield the tokens of an answer. Closing the generator cancels the request.

    Raises:
        ContextLengthError: the prompt leaves no room for an answer.
        RequestError: an option is out of range, or the prompt contains ids outside the vocabulary.
        GrammarError: the grammar cannot be followed.
        MemoryBudgetError: the KV pool is too small.
    """
    wanted = read_options(options)
    room = loaded.window - len(prompt)
    if room < 1:
        longer = loaded.longer_window
        raise ContextLengthError(len(prompt), loaded.window, param="prompt", longer_window=longer)
    if wanted.grammar is not None:
        queue.set_vocabulary(text.grammars.vocabulary)
    answer = AnswerText(
        text.tokenizer,
        wanted.end.strings or text.stops,
        skip_special=True,
        at_text_start=True,
        shows_stop=wanted.end.shows_stop,
    )
    ends = wanted.end.stop_params(room, text.stop_ids)
    sampling = _sampling(text, wanted.sampling)
    request = queue.submit(prompt, sampling, ends, wanted.grammar, wanted.beams, wanted.adapter)
    try:
        while True:
            token = queue.next(request)
            piece = answer.feed(token)
            finish = piece.finish if piece else None
            yield _generated(token, piece.text if piece else "", finish)
            if finish is not None:
                return
    finally:
        queue.cancel(request)


def _sampling(text: ModelText, choice: SamplingChoice) -> SamplingParams:
    """Return the sampling parameters: the caller's values, else the model's defaults."""
    named = (
        choice.tokens(text.tokenizer, text.grammars.vocabulary.tokens) if choice.names_tokens else NO_TOKENS
    )
    return choice.params(text.defaults, choice.drawn_seed(), choice=0, tokens=named)


def _generated(token: TokenOutput, text: str, finish: str | None) -> GeneratedToken:
    assert token.logprobs is not None, "read_options requests them"
    return GeneratedToken(
        text, token.token, token.logprobs.chosen, cast("Literal['stop', 'length'] | None", finish)
    )
