"""Prompts that may be cut where they do not fit; only a request that allows it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from llmd.api.errors import RequestError

Encode = Callable[[Sequence[Mapping[str, Any]]], tuple[int, ...]]


class Fitted(Struct, frozen=True):
    """A prompt, and how many tokens of the whole one it lacks."""

    tokens: tuple[int, ...]
    truncated_tokens: int = 0


def fit_messages(encode: Encode, messages: Sequence[Mapping[str, Any]], most: int) -> Fitted:
    """A conversation in at most ``most`` tokens, without its oldest messages.

    System messages and the last message stay, whether or not they fit. ``encode`` makes tokens of messages; where it
    refuses what is left, because an answer lost its question, one more message goes.
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
    """A prompt in at most ``most`` tokens: its first ``keep``, and as many of its last as there is room for."""
    if len(tokens) <= most:
        return Fitted(tokens)
    keep = min(max(keep, 0), most)
    return Fitted(tokens[:keep] + tokens[len(tokens) - (most - keep) :], len(tokens) - most)


def fit_whole(ids: Sequence[int], most: int, num_ending: int) -> Fitted:
    """A complete text in at most ``most`` tokens: its first ones, and the ``num_ending`` that the tokenizer ended it with."""
    if len(ids) <= most:
        return Fitted(tuple(ids))
    ending = min(num_ending, most)
    kept = (*ids[: most - ending], *ids[len(ids) - ending :])
    return Fitted(kept, len(ids) - most)


def prompt_room(window: int, max_tokens: int | None) -> int:
    """How many tokens of a window a prompt that is cut may have: an answer gets what it asks for, a half at most."""
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
