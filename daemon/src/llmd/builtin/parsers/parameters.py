"""The parameters of a tool one by one, for families that do not write arguments as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llmd.api.parsing import ChoiceTerm, Term, Tool

_DEFINITIONS = ("$defs", "definitions")


def schemas_of(tool: Tool) -> dict[str, dict[str, Any]]:
    """The schema of each parameter, with the definitions that it may refer to."""
    shared = {key: tool.parameters[key] for key in _DEFINITIONS if key in tool.parameters}
    properties = tool.parameters.get("properties")
    found = properties if isinstance(properties, Mapping) else {}
    return {name: {**schema, **shared} for name, schema in found.items() if isinstance(schema, Mapping)}


def required_of(schema: Mapping[str, Any]) -> frozenset[str]:
    """Names that must be there."""
    required = schema.get("required")
    return (
        frozenset(name for name in required if isinstance(name, str))
        if isinstance(required, list)
        else frozenset()
    )


def is_text(schema: Mapping[str, Any]) -> bool:
    """Whether a value is always a string."""
    return schema.get("type") == "string"


def pattern_of(schema: Mapping[str, Any]) -> str | None:
    """The pattern of a string that binds it from its beginning to its end, without its anchors; None: it has no such pattern."""
    pattern = schema.get("pattern")
    if not isinstance(pattern, str) or not pattern.startswith("^") or not pattern.endswith("$"):
        return None
    return f"(?:{pattern[1:-1]})"


def value_of(text: str, schema: Mapping[str, Any]) -> str:
    """The JSON of a value that stands there as plain text: of a string it is the text, of all else JSON if it is."""
    if is_text(schema):
        return json.dumps(text, ensure_ascii=False)
    words = {"True": "true", "False": "false", "None": "null"}
    stripped = words.get(text.strip(), text.strip())
    try:
        json.loads(stripped, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return json.dumps(text, ensure_ascii=False)
    return stripped


def joined(members: Sequence[tuple[bool, tuple[Term, ...]]], separator: str) -> tuple[Term, ...]:
    """Members in order with ``separator`` between those that are there; each says whether it must be there."""
    return tuple(_joined(members, separator, first=True))


def _joined(
    members: Sequence[tuple[bool, tuple[Term, ...]]], separator: str, *, first: bool
) -> Iterator[Term]:
    if not members:
        return
    (needed, terms), rest = members[0], members[1:]
    lead = () if first or not separator else (separator,)
    if needed:
        yield from (*lead, *terms, *_joined(rest, separator, first=False))
    elif first and separator:
        with_it = (*terms, *_joined(rest, separator, first=False))
        yield ChoiceTerm((with_it, tuple(_joined(rest, separator, first=True))))
    else:
        yield ChoiceTerm(((*lead, *terms), ()))
        yield from _joined(rest, separator, first=first)


def _refuse(constant: str) -> None:
    raise ValueError(constant)
