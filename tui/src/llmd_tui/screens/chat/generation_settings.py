"""The settings of a chat that a person types as text."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from llmd.api.errors import LlmdError
from llmd_tui.screens.chat.json_files import read_json
from llmd_tui.screens.chat.store.records import Settings

DEFAULT = "default"
THINKING = {"on": True, "off": False, DEFAULT: None}
ALIASES = {"temp": "temperature"}


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


NUMBERS: dict[str, Callable[[str], int | float]] = {
    "temperature": _number,
    "top_p": _number,
    "top_k": int,
    "min_p": _number,
    "max_tokens": int,
    "seed": int,
    "repetition_penalty": _number,
}
"""Request fields, whose ranges the daemon checks."""


def with_number(settings: Settings, name: str, text: str) -> Settings:
    """Return settings with one number changed; ``default`` or nothing leaves it to the model.

    Raises:
        LlmdError: there is no such setting, or the text is not a number.
    """
    field = ALIASES.get(name, name).replace("-", "_")
    if field not in NUMBERS:
        raise LlmdError(f"there is no setting {name}; the settings are {', '.join(NUMBERS)}")
    if text.strip() in {"", DEFAULT}:
        return changed(settings, **{field: None})
    try:
        return changed(settings, **{field: NUMBERS[field](text)})
    except ValueError as error:
        kind = "a whole number" if NUMBERS[field] is int else "a number"
        raise LlmdError(f"{field} must be {kind}, not {text.strip()!r}") from error


def with_schema(settings: Settings, file: str) -> Settings:
    """Return settings whose answers follow the JSON schema in a file; an empty name removes the schema.

    Raises:
        LlmdError: the file cannot be read, or has no JSON object.
    """
    if not file.strip():
        return changed(settings, schema_file="", schema=None)
    path = Path(file.strip()).expanduser()
    schema = read_json(path)
    if not isinstance(schema, dict):
        raise LlmdError(f"{path} is not a JSON schema", hint="it must be one JSON object")
    return changed(settings, schema_file=str(path), schema=schema)


def with_thinking(settings: Settings, text: str) -> Settings:
    """Return settings with reasoning ``on``, ``off`` or as by ``default``.

    Raises:
        LlmdError: the text is none of them.
    """
    if text not in THINKING:
        raise LlmdError(f"write {', '.join(THINKING)}, not {text!r}")
    return changed(settings, thinking=THINKING[text])


def changed(settings: Settings, **changes: Any) -> Settings:
    """Return settings with other values."""
    return msgspec.structs.replace(settings, **changes)


def listed(settings: Settings) -> str:
    """Return the settings that differ from the model's, for people."""
    parts = [f"{name} {value}" for name in NUMBERS if (value := getattr(settings, name)) is not None]
    if settings.thinking is not None:
        parts.append(f"reasoning {'on' if settings.thinking else 'off'}")
    if settings.schema is not None:
        parts.append(f"schema {Path(settings.schema_file).name}")
    if settings.tools:
        parts.append(f"tools {Path(settings.tools_file).name}")
    return ", ".join(parts)
