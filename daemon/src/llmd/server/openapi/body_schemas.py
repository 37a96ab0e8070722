"""JSON schemas of request bodies, from classes that declare their fields."""

from __future__ import annotations

from typing import Any, get_type_hints

import msgspec

from llmd.config.field_docs import field_docs
from llmd.requests.number import Number

Schema = dict[str, Any]
MAX_EXACT = 2**53
"""The largest integer that every reader of JSON keeps as it is."""


def body_schema(parts: tuple[type, ...], tag: str, components: dict[str, Schema]) -> Schema:
    """Return the schema of one body and add the schemas that it refers to.

    Args:
        parts: ``TypedDict`` classes; of two fields of one name, the last counts.
        tag: put before the names of schemas, so that dialects may have the same names.
        components: schemas by name, which this adds to.
    """
    refs, found = msgspec.json.schema_components(parts, ref_template=f"#/components/schemas/{tag}.{{name}}")
    own = [found.pop(ref["$ref"].partition(f"/{tag}.")[2]) for ref in refs]
    components |= {f"{tag}.{name}": _without_docstring(schema) for name, schema in found.items()}
    properties: dict[str, Schema] = {}
    required: set[str] = set()
    for part, schema in zip(parts, own, strict=True):
        docs, numbers = field_docs(part), _numbers(part)
        required |= set(schema.get("required", ()))
        for name, field in schema["properties"].items():
            described = {"description": docs[name]} if name in docs else {}
            properties[name] = field | described | _range(numbers.get(name))
    body: Schema = {"type": "object", "properties": dict(sorted(properties.items()))}
    return body | ({"required": sorted(required)} if required else {})


def _without_docstring(schema: Schema) -> Schema:
    """Return a schema without the docstring of its class, which is written for readers of the code."""
    return {name: value for name, value in schema.items() if name not in {"title", "description"}}


def _numbers(part: type) -> dict[str, Number]:
    """Return the readers that know the ranges of numbers."""
    return {
        name: found
        for name, hint in get_type_hints(part, include_extras=True).items()
        for found in getattr(hint, "__metadata__", ())
        if isinstance(found, Number)
    }


def _range(number: Number | None) -> Schema:
    if number is None:
        return {}
    low = "exclusiveMinimum" if number.excludes_low else "minimum"
    bounds = {low: number.low, "maximum": number.high}
    return {name: _whole(bound) for name, bound in bounds.items() if abs(bound) <= MAX_EXACT}


def _whole(number: float) -> float:
    """Return an integer where the number is one: JSON has no other difference."""
    return int(number) if float(number).is_integer() else number
