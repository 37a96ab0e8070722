"""Inputs in every form that llama.cpp accepts: texts, token ids, and lists that mix both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llmd.requests.fields import BadRequestError, RequestFields, is_token_id

TEXT_KEY, MEDIA_KEY = "prompt_string", "multimodal_data"

MixedText = str | tuple[int | str, ...]
"""A text, or a sequence of token ids and texts."""

Encode = Callable[[str], Sequence[int]]


def read_mixed_texts(fields: RequestFields, name: str, most: int) -> tuple[MixedText, ...]:
    """Read a text, token ids, a mix of both, ``{"prompt_string":
    text}``, or a list of at most ``most`` such inputs.

    A list that contains a token id is one input; any other list is a list of inputs.

    Raises:
        BadRequestError: the field contains something else, or images or audio.
    """
    value = fields.value(name)
    is_list = isinstance(value, list) and not any(is_token_id(item) for item in value)
    texts = tuple(_mixed_text(name, item) for item in (value if is_list else [value]))
    if not 0 < len(texts) <= most or any(text is None for text in texts):
        forms = f'text, token ids, texts and token ids in turn, {{"{TEXT_KEY}": text}}'
        raise fields.invalid(name, f"{forms}, or a list of at most {most} of them")
    return tuple(text for text in texts if text is not None)


def encode_mixed(text: MixedText, whole: Encode, part: Encode) -> tuple[int, ...]:
    """Return the tokens of an input. ``whole`` encodes a text at its beginning,
    ``part`` a text after other items.
    """
    if isinstance(text, str):
        return tuple(whole(text))
    ids: list[int] = []
    for place, item in enumerate(text):
        if isinstance(item, int):
            ids.append(item)
        else:
            ids += part(item) if place else whole(item)
    return tuple(ids)


def _mixed_text(name: str, value: Any) -> MixedText | None:
    if isinstance(value, dict):
        return _object_text(name, value)
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(i, str) or is_token_id(i) for i in value):
        return tuple(value)
    return None


def _object_text(name: str, value: dict[str, Any]) -> str | None:
    if value.get(MEDIA_KEY):
        raise BadRequestError(
            f"{name}.{MEDIA_KEY} is not supported: models accept only text",
            code="unsupported_parameter",
            param=name,
            hint="leave it out",
        )
    text = value.get(TEXT_KEY)
    return text if isinstance(text, str) else None
