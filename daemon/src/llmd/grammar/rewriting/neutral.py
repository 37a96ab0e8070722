"""Remove keywords that constrain nothing before anything is rewritten or rejected."""

from __future__ import annotations

from typing import Any

from llmd.grammar.rewriting.formats import is_known

# Values that constrain nothing.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "not": (False,),
    "uniqueItems": (False,),
    "propertyNames": (True, {}, {"type": "string"}),  # names are strings
    "dependentRequired": ({},),
    "dependentSchemas": ({},),
    "unevaluatedItems": (True, {}),
    "unevaluatedProperties": (True, {}),
}
# Keywords that have no effect without another one.
_DEPENDING = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}


def without_neutral(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without keywords that constrain nothing."""
    return {key: value for key, value in schema.items() if not binds_nothing(key, value, schema)}


def binds_nothing(key: str, value: Any, schema: dict[str, Any]) -> bool:
    """Return whether a keyword allows every value that the rest of the schema allows."""
    if key in _NEUTRAL:
        return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in _NEUTRAL[key])
    if key in _DEPENDING:
        other = _DEPENDING[key]
        return other not in schema or binds_nothing(other, schema[other], schema)
    found = key == "x-guidance"  # llguidance's own switch, which could turn the schema off
    match key:
        case "if":
            found = all(schema.get(branch, True) in (True, {}) for branch in ("then", "else"))
        case "contains":
            found = schema.get("minContains", 1) == 0 and "maxContains" not in schema
        case "format":
            found = not is_known(value)
        case "minProperties":
            found = bool(value <= len(required_names(schema)))
    return found


def required_names(schema: dict[str, Any]) -> list[str]:
    """Return the names that a schema requires, in order and without duplicates."""
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    return list(dict.fromkeys(name for name in names if isinstance(name, str)))
