"""The models to chat with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec


class ChatModel(msgspec.Struct, frozen=True):
    """A model of ``GET /v1/models``."""

    name: str
    window: int | None = None
    """Length of the context in tokens; None if it is not known before loading."""
    status: str = ""


def chat_models(reply: Mapping[str, Any]) -> list[ChatModel]:
    """Return the models of a reply, in its order: loaded ones first."""
    return [
        ChatModel(str(one["id"]), one.get("max_model_len"), str(one.get("status") or ""))
        for one in reply.get("data", ())
        if "id" in one
    ]


def rows(models: Sequence[ChatModel]) -> Iterator[tuple[str, str]]:
    """Yield name and line of each model."""
    width = max((len(one.name) for one in models), default=0)
    for one in models:
        window = f"{one.window} tokens" if one.window else ""
        yield one.name, f"{one.name:{width}}  {one.status:9} {window}".rstrip()
