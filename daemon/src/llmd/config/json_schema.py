"""The JSON Schema of ``config.toml``, for editors and other checkers."""

from __future__ import annotations

from typing import Any

from msgspec import inspect

from llmd.config.schema import PER_MODEL, Config
from llmd.config.setting_docs import setting_docs
from llmd.config.setting_values import MODELS, keys_by_name, setting_fields
from llmd.config.values import choices_of, is_byte_size, is_duration

DIALECT = "http://json-schema.org/draft-07/schema#"
"""The newest one that the TOML extensions of common editors know."""
BYTE_SIZE = r"^\s*\d+(\.\d+)?\s*([KMGT](i?B)?|B)?\s*$"
DURATION = r"^\s*[+-]?((\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h)?)+\s*$"


def json_schema() -> dict[str, Any]:
    """Return the schema of the file: a table for each section, and one for each model."""
    sections = Config.__struct_fields__
    keys = keys_by_name()
    tables = {
        section: _table([key for key in keys.values() if key.startswith(f"{section}.")])
        for section in sections
    }
    own = _table([keys[name] for name in PER_MODEL], with_defaults=False)
    models = {
        "type": "object",
        "description": 'Settings of single models, such as [models."org/name"].',
        "additionalProperties": own,
    }
    return {
        "$schema": DIALECT,
        "title": "config.toml of llmd",
        "type": "object",
        "additionalProperties": False,
        "properties": {**tables, MODELS: models},
    }


def _table(keys: list[str], *, with_defaults: bool = True) -> dict[str, Any]:
    properties = {key.partition(".")[2]: _setting(key, with_default=with_defaults) for key in keys}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _setting(key: str, *, with_default: bool) -> dict[str, Any]:
    field, name = setting_fields()[key], key.partition(".")[2]
    described = {"description": setting_docs()[name], **_kind(field.type)}
    if with_default and field.default is not None:
        described["default"] = list(field.default) if isinstance(field.default, tuple) else field.default
    return described


def _kind(kind: inspect.Type) -> dict[str, Any]:
    if is_byte_size(kind):
        return {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": BYTE_SIZE}]}
    if is_duration(kind):
        return {"anyOf": [{"type": "number"}, {"type": "string", "pattern": DURATION}]}
    if choices := choices_of(kind):
        return {"enum": list(choices)}
    match kind:
        case inspect.UnionType(types=types):
            (only,) = (one for one in types if not isinstance(one, inspect.NoneType))
            return _kind(only)
        case inspect.BoolType():
            form: dict[str, Any] = {"type": "boolean"}
        case inspect.IntType(ge=ge):
            form = {"type": "integer", "minimum": ge}
        case inspect.FloatType(ge=ge, gt=gt, le=le):
            limits = {"minimum": ge, "exclusiveMinimum": gt, "maximum": le}
            form = {"type": "number", **{name: limit for name, limit in limits.items() if limit is not None}}
        case inspect.LiteralType(values=values):
            form = {"enum": list(values)}
        case inspect.VarTupleType():
            form = {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}
        case _:
            form = {"type": "string", **_pattern(kind)}
    return form


def _pattern(kind: inspect.Type) -> dict[str, str]:
    """Return what a text must look like, if there is a rule."""
    match kind:
        case inspect.Metadata(type=inspect.StrType(pattern=str(pattern))):
            return {"pattern": pattern}
        case _:
            return {}
