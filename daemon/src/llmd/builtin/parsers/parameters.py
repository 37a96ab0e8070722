"""The single parameters of a tool, for families that do not write arguments as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llmd.api.parsing import ChoiceTerm, Term, Tool

_DEFINITIONS = ("$defs", "definitions")


def schemas_of(tool: Tool) -> dict[str, dict[str, Any]]:
    """Return the schema of each parameter, with the definitions to which it may refer."""
    shared = {key: tool.parameters[key] for key in _DEFINITIONS if key in tool.parameters}
    properties = tool.parameters.get("properties")
    found = properties if isinstance(properties, Mapping) else {}
    return {name: {**schema, **shared} for name, schema in found.items() if isinstance(schema, Mapping)}


def definition_of(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema to which ``#/$defs/NAME`` refers in ``root``; empty if it has none of that name."""
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def required_of(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the required parameters."""
    required = schema.get("required")
    return (
        frozenset(name for name in required if isinstance(name, str))
        if isinstance(required, list)
        else frozenset()
    )


def is_text(schema: Mapping[str, Any]) -> bool:
    """Whether the schema allows only strings."""
    return schema.get("type") == "string"


def pattern_of(schema: Mapping[str, Any]) -> str | None:
    """Return the pattern for the whole string, without anchors; None unless it is anchored at both ends."""
    pattern = schema.get("pattern")
    if not isinstance(pattern, str) or not pattern.startswith("^") or not pattern.endswith("$"):
        return None
    return f"(?:{pattern[1:-1]})"


def value_of(text: str, schema: Mapping[str, Any]) -> str:
    """Return the JSON for a plain-text value: a string if the schema says so or the text is not JSON."""
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
    """Join members in order with ``separator``. Each is a pair: whether it is required, and its terms."""
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
