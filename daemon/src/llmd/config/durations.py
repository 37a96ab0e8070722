"""Durations as text: seconds, or Go's form such as ``1h30m``."""

from __future__ import annotations

import re

_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)", re.ASCII)
_DURATION = re.compile(rf"([+-]?)((?:{_PART.pattern})+)", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)


def format_duration(seconds: float) -> str:
    """Format seconds for `parse_duration`; whole seconds in the form ``1h30m``."""
    if seconds <= 0 or seconds != int(seconds):
        return f"{seconds:g}" if seconds <= 0 else f"{seconds:g}s"
    minutes, rest_s = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest_s, "s"))
    return "".join(f"{amount}{unit}" for amount, unit in parts if amount)


def parse_duration(text: str) -> float:
    """Parse a duration such as ``300``, ``10m``, ``1h30m`` or ``-1`` into seconds.

    Raises:
        ValueError: the text has another form.
    """
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return float(text)
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(text)
    seconds = sum(float(amount) * _UNITS_S[unit] for amount, unit in _PART.findall(found[2]))
    return -seconds if found[1] == "-" else seconds
