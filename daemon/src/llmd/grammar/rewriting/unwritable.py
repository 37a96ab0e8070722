"""Handle values that llguidance's grammars write differently, or not at all."""

from __future__ import annotations

from typing import Any

from llmd.api.errors import GrammarError

MARGIN = 1e-6
"""Distance between an excluded whole number and the bound that replaces it."""
MAX_WHOLE = 2**31
"""Above this the margin is lost in floating-point precision."""


def check_characters(schema: dict[str, Any], path: str) -> None:
    """Reject control characters in strings if they have no letter escape, the only allowed kind.

    See the options in `llmd.grammar.lark`.
    """
    names = schema.get("properties")
    texts = {**schema, "properties": [*names] if isinstance(names, dict) else None}
    for key in ("const", "enum", "properties", "required"):
        if _has_control_character(texts.get(key)):
            raise GrammarError(
                f"the JSON schema has a control character in {key} at {path}, which cannot be enforced",
                hint="remove it from the schema and check it in the answer",
            )


def _has_control_character(value: Any) -> bool:
    if isinstance(value, str):
        return any((sign < " " and sign not in "\b\f\n\r\t") or sign == "\x7f" for sign in value)
    if isinstance(value, dict):
        return any(map(_has_control_character, (*value, *value.values())))
    return isinstance(value, list) and any(map(_has_control_character, value))


def with_names_together(schema: dict[str, Any]) -> dict[str, Any]:
    """Move ``patternProperties`` before ``additionalProperties``: llguidance reads keywords in order and
    otherwise forgets the patterns.
    """
    if not {"patternProperties", "additionalProperties"} <= schema.keys():
        return schema
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "additionalProperties":
            found["patternProperties"] = schema["patternProperties"]
        if key != "patternProperties":
            found[key] = value
    return found


def without_whole_bounds(schema: dict[str, Any]) -> dict[str, Any]:
    """Move exclusive whole-number bounds by a margin: llguidance allows them if the other bound is near."""
    if schema.get("type") == "integer":
        return schema
    bounds = dict(schema)
    for bound, margin, inner in (("minimum", MARGIN, max), ("maximum", -MARGIN, min)):
        value = bounds.get(f"exclusive{bound.capitalize()}")
        if isinstance(value, (int, float)) and abs(value) < MAX_WHOLE and value == int(value):
            del bounds[f"exclusive{bound.capitalize()}"]
            bounds[bound] = inner(bounds.get(bound, value + margin), value + margin)
    return bounds
