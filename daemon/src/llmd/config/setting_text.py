"""Formats setting values for people, with units, and says what applies if a setting is not set."""

from __future__ import annotations

from typing import Any

from msgspec import inspect

from llmd.api.byte_size import format_bytes
from llmd.config.durations import format_duration
from llmd.config.setting_values import setting_fields
from llmd.config.values import is_byte_size, is_duration

UNSET = {
    "addr": "the user's socket and 127.0.0.1:8642",
    "max_queue_tokens": "no limit",
    "max_queue_per_key": "no limit",
    "request_timeout_s": "no limit",
    "exit_idle_s": "never",
    "gpu_layers": "as many as are fastest",
    "cpu_experts": "as many as are fastest",
    "max_memory": "memory available at startup",
    "threads": "the fastest number",
    "max_ctx": "the model's maximum",
    "quant": "as stored",
    "kv_memory": "half of the free memory after loading",
    "host": "the user's socket, the system's, then addr, by default 127.0.0.1:8642",
    "hub": "HF_ENDPOINT, else huggingface.co",
}
"""What applies if a setting has no value."""


def setting_text(name: str, value: Any) -> str:
    """Format the value of a setting; ``name`` is its bare name or its name in `llmd config show`."""
    name = name.rpartition(".")[2]
    kind = _fields()[name].type
    if value is None or value == ():
        return UNSET.get(name, "")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if is_byte_size(kind):
        return format_bytes(value)
    if is_duration(kind):
        return format_duration(value)
    return f"{value:g} s" if name.endswith("_s") else str(value)


def default_text(name: str) -> str:
    """Format the default of a setting; empty for a switch that is off, or if there is nothing to say."""
    field = _fields().get(name)
    return "" if field is None or field.default is False else setting_text(name, field.default)


def _fields() -> dict[str, inspect.Field]:
    return {key.partition(".")[2]: field for key, field in setting_fields().items()}
