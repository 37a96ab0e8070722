"""Truncate prompts that do not fit, for requests that allow it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from llmd.api.errors import RequestError

Encode = Callable[[Sequence[Mapping[str, Any]]], tuple[int, ...]]


class Fitted(Struct, frozen=True):
    """A prompt, possibly truncated."""

    tokens: tuple[int, ...]
    truncated_tokens: int = 0
    """How many tokens were removed."""


def fit_messages(encode: Encode, messages: Sequence[Mapping[str, Any]], most: int) -> Fitted:
    """Fit a conversation into at most ``most`` tokens: drop the fewest of its oldest messages.

    System messages and the last message stay, whether or not they fit. If ``encode`` rejects the remaining
    messages, for example because an answer lost its question, more are dropped.
    """
    whole = encode(messages)
    droppable = [place for place, message in enumerate(messages[:-1]) if message.get("role") != "system"]
    if len(whole) <= most or not droppable:
        return Fitted(whole)
    fewest, found = 1, None
    last = len(droppable)
    while fewest <= last:
        middle = (fewest + last) // 2
        tokens = _without(encode, messages, droppable[:middle])
        if tokens is not None and len(tokens) <= most:
            found, last = tokens, middle - 1
        else:
            fewest = middle + 1
    tokens = found or _without(encode, messages, droppable) or whole
    return Fitted(tokens, len(whole) - len(tokens))


def fit_tokens(tokens: tuple[int, ...], most: int, keep: int) -> Fitted:
    """Fit a prompt into at most ``most`` tokens: keep its first ``keep``, and as many of its last as fit."""
    if len(tokens) <= most:
        return Fitted(tokens)
    keep = min(max(keep, 0), most)
    return Fitted(tokens[:keep] + tokens[len(tokens) - (most - keep) :], len(tokens) - most)


def fit_whole(ids: Sequence[int], most: int, num_ending: int) -> Fitted:
    """Fit a text into at most ``most`` tokens.

    Keep its first ones and the ``num_ending`` that the tokenizer wrote at its end.
    """
    if len(ids) <= most:
        return Fitted(tuple(ids))
    ending = min(num_ending, most)
    kept = (*ids[: most - ending], *ids[len(ids) - ending :])
    return Fitted(kept, len(ids) - most)


def prompt_room(window: int, max_tokens: int | None) -> int:
    """Return how many tokens of the context window a truncated prompt may use.

    The answer gets the rest: ``max_tokens``, or a quarter of the window if None, but at most half of it.
    """
    wanted = window // 4 if max_tokens is None else max_tokens
    return window - max(1, min(wanted, window // 2))


def _without(
    encode: Encode, messages: Sequence[Mapping[str, Any]], dropped: Sequence[int]
) -> tuple[int, ...] | None:
    gone = set(dropped)
    try:
        return encode([message for place, message in enumerate(messages) if place not in gone])
    except RequestError:
        return None
