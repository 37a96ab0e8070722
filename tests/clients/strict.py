"""Replies held against the clients' own types:
nothing may be missing, of another type, or unknown to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel, TypeAdapter


def check(kind: Any, raw: bytes | str, beyond: frozenset[str] = frozenset()) -> Any:
    """Raw JSON as a client's type; raises where a field is missing, has another type, or is not in that type.

    ``beyond``: names of fields that may be unknown to it.
    """
    value = _adapter(kind).validate_json(raw, strict=True)
    unknown = [path for path in unknown_fields(value, "body") if path.rpartition(".")[2] not in beyond]
    assert unknown == [], f"{kind} does not know {', '.join(unknown)}"
    return value


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Building one of a large union takes seconds."""
    return TypeAdapter(kind)


def unknown_fields(value: Any, path: str) -> Iterator[str]:
    """Fields that the type of a model in ``value`` does not have."""
    match value:
        case BaseModel():
            yield from (f"{path}.{name}" for name in value.model_extra or ())
            for name in value.model_fields_set & set(type(value).model_fields):
                yield from unknown_fields(getattr(value, name), f"{path}.{name}")
        case list():
            for place, item in enumerate(value):
                yield from unknown_fields(item, f"{path}[{place}]")
