"""Check the type of each keyword's value, so that rules need not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llmd.api.errors import GrammarError


def checked(schema: dict[str, Any], path: str) -> dict[str, Any]:
    """Check that keywords of a schema of draft 2020-12 have values of the right type; return the schema.

    Raises:
        GrammarError: a value has the wrong type.
    """
    for kind, fits, keywords in _KINDS:
        for key in keywords:
            if key in schema and not fits(schema[key]):
                raise GrammarError(
                    f"the JSON schema has {key} at {path} with the value {_shown(schema[key])}, which is not {kind}",
                    hint="correct it",
                )
    return schema


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


_KINDS: tuple[tuple[str, Callable[[Any], bool], tuple[str, ...]], ...] = (
    (
        "a non-negative integer",
        _is_count,
        (
            "maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength",
            "minProperties",
        ),
    ),
    (
        "a number",
        _is_number,
        ("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"),
    ),
    ("a string", lambda value: isinstance(value, str), ("$ref", "format", "pattern")),
    ("a boolean", lambda value: isinstance(value, bool), ("uniqueItems",)),
    ("a list of names", _are_names, ("required",)),
    (
        "the name of a type, or a list of them",
        lambda value: isinstance(value, str) or _are_names(value),
        ("type",),
    ),
    ("a list", _is_list, ("allOf", "anyOf", "enum", "oneOf", "prefixItems")),
    (
        "an object",
        _is_object,
        ("$defs", "dependentRequired", "dependentSchemas", "patternProperties", "properties"),
    ),
    (
        "an object of lists of names",
        lambda value: all(map(_are_names, value.values())),
        ("dependentRequired",),
    ),
)  # fmt: skip
