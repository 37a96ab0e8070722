"""One answer: a prompt in, tokens with their text out."""

from __future__ import annotations

import operator
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Literal, cast

from llmd.api.errors import ContextLengthError, RequestError
from llmd.api.messages import BeamParams, SamplingParams, StopParams, TokenOutput
from llmd.chat.answers.answer_text import AnswerText
from llmd.chat.model_text import ChatPrompt, ModelText
from llmd.chat.sampling_choice import SamplingChoice
from llmd.embedded.generated import GeneratedToken, GenerationOptions, Prompt
from llmd.embedded.token_queue import TokenQueue

SAMPLING = ("temperature", "top_k", "top_p", "min_p")
LIMITS = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "top_k": (0, 1 << 31),
    "length_penalty": (-10, 10),
}


def encode(text: ModelText, prompt: Prompt, system: str | None = None) -> tuple[int, ...]:
    """Make a prompt token ids: a question and a conversation in the model's own form, ids as they are.

    Raises:
        TemplateError: the model has no chat template, or it is broken.
        RequestError: ``system`` was given for what is no question, or messages are malformed.
    """
    if isinstance(prompt, str):
        instructions = [{"role": "system", "content": system}] if system else []
        return text.encode_chat(ChatPrompt([*instructions, {"role": "user", "content": prompt}]))
    if system is not None:
        raise RequestError(
            "system goes with a question alone",
            param="system",
            hint='begin the conversation with {"role": "system", "content": …}',
        )
    if len(prompt) and isinstance(prompt[0], Mapping):
        return text.encode_chat(ChatPrompt(cast("Sequence[dict[str, Any]]", prompt)))
    return token_ids(cast("Sequence[int]", prompt))


def token_ids(given: Sequence[int]) -> tuple[int, ...]:
    """Token ids as Python's integers; the caller's may be NumPy's.

    Raises:
        RequestError: one is no integer.
    """
    try:
        return tuple(map(operator.index, given))
    except TypeError as error:
        raise RequestError(
            f"a prompt is a text, messages or token ids: {error}",
            param="prompt",
            hint='pass "…", [{"role": "user", "content": "…"}] or [1, 2, 3]',
        ) from error


def check_names(options: GenerationOptions) -> None:
    """Refuse an option that does not exist: a misspelt one would be followed by nobody.

    Raises:
        RequestError: its name, and the names there are.
    """
    known = GenerationOptions.__annotations__
    unknown = next((name for name in options if name not in known), None)
    if unknown is not None:
        raise RequestError(
            f"there is no option {unknown}", param=unknown, hint=f"the options are {', '.join(known)}"
        )


def generate(
    queue: TokenQueue, text: ModelText, window: int, prompt: tuple[int, ...], options: GenerationOptions
) -> Generator[GeneratedToken]:
    """Yield the tokens of an answer; closing the generator frees the request. ``window``: tokens of prompt and answer.

    Raises:
        ContextLengthError: the prompt leaves no room for an answer.
        RequestError: an option is out of range, or the prompt has ids outside the vocabulary.
        GrammarError: the grammar cannot be followed.
        MemoryBudgetError: the KV pool is too small.
    """
    stop = options.get("stop")
    stops = (stop,) if isinstance(stop, str) else tuple(stop or ())
    answer = AnswerText(text.tokenizer, stops, skip_special=True, at_text_start=True)
    grammar = options.get("grammar")
    if grammar is not None:
        queue.learn(text.grammars.vocabulary)
    ends = _stop_of(text, window, len(prompt), options)
    request = queue.submit(prompt, sampling_of(text, options), ends, grammar, beams_of(options))
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


def sampling_of(text: ModelText, options: GenerationOptions) -> SamplingParams:
    """The sampling that holds: the caller's, else the model's.

    Raises:
        RequestError: a value is out of range.
    """
    given = {name: options.get(name) for name in SAMPLING} | {"top_k": _integer(options, "top_k")}
    for name, value in given.items():
        if value is not None:
            _check(name, cast("float", value))
    choice = SamplingChoice(**given, seed=_integer(options, "seed"), logprobs=0)  # type: ignore[arg-type]
    return choice.params(text.defaults, choice.drawn_seed(), choice=0)


def beams_of(options: GenerationOptions) -> BeamParams | None:
    """The search that is wanted, if any.

    Raises:
        RequestError: a value is out of range.
    """
    width = _integer(options, "beam_width")
    penalty, early = options.get("length_penalty"), options.get("early_stopping")
    if width is None:
        if penalty is not None or early is not None:
            raise RequestError(
                "length_penalty and early_stopping go with beam_width",
                param="beam_width",
                hint="give it, too",
            )
        return None
    if penalty is not None:
        _check("length_penalty", penalty)
    if early not in (None, True, False, "never"):
        raise RequestError(
            f'early_stopping is {early!r}, expected True, False or "never"',
            param="early_stopping",
            hint="correct it",
        )
    return BeamParams(
        width, 1, 1.0 if penalty is None else penalty, "never" if early == "never" else bool(early)
    )


def _integer(options: GenerationOptions, name: str) -> int | None:
    """An integer option. What is none is refused here: in the batch it would end other callers' steps."""
    value = options.get(name)
    try:
        return None if value is None else operator.index(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise RequestError(
            f"{name} is {value!r}, expected an integer", param=name, hint="correct it"
        ) from error


def _check(name: str, value: float) -> None:
    low, high = LIMITS[name]
    if not low <= value <= high or (name == "top_p" and value == 0):
        raise RequestError(f"{name} is {value}, expected {low} to {high}", param=name, hint="correct it")


def _stop_of(text: ModelText, window: int, prompt_len: int, options: GenerationOptions) -> StopParams:
    room = window - prompt_len
    if room < 1:
        raise ContextLengthError(prompt_len, window, param="prompt")
    asked = _integer(options, "max_tokens")
    if asked is not None and asked < 1:
        raise RequestError(f"max_tokens is {asked}", param="max_tokens", hint="ask for at least one token")
    return StopParams(max_tokens=room if asked is None else min(room, asked), stop_ids=text.stop_ids)


def _generated(token: TokenOutput, text: str, finish: str | None) -> GeneratedToken:
    assert token.logprobs is not None, "they were asked for"
    return GeneratedToken(
        text, token.token, token.logprobs.chosen, cast("Literal['stop', 'length'] | None", finish)
    )
