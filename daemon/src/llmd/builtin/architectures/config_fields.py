"""Typed access to ``config.json``; errors name the field that is missing or has the wrong type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from llmd.api import CheckpointError, UnsupportedModelError

CONFIG_FILE = "config.json"
MAX_SIZE = 1 << 24
"""Larger widths, vocabularies and context windows count as damage and are refused."""
MAX_NUMBER = 1e12
INFINITY = {"__float__": "Infinity"}
"""How transformers 5 writes it."""

_MISSING: Any = object()
_Choice = TypeVar("_Choice")


class ConfigFields:
    """The fields of a configuration, or of an object in it; messages prefix names with ``path``.

    Null counts as missing. ``default`` is returned for a missing field; without it the field is required.
    Every method raises `CheckpointError` for a value of the wrong type or range.
    """

    def __init__(self, values: Mapping[str, Any], path: str = "") -> None:
        self._values = values
        self._path = path

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def __len__(self) -> int:
        return len(self._values)

    def size(self, name: str, default: int = _MISSING, *, at_most: int = MAX_SIZE) -> int:
        """Return an integer of at least 1."""
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= at_most:
            self._refuse(name, value, f"an integer in 1..{at_most}")
        return value

    def count(self, name: str, default: int = _MISSING) -> int:
        """Return an integer of at least 0."""
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SIZE:
            self._refuse(name, value, f"an integer in 0..{MAX_SIZE}")
        return value

    def positive(self, name: str, default: float = _MISSING) -> float:
        """Return a number above 0."""
        value = self._get(name, default)
        if not _is_positive(value):
            self._refuse(name, value, f"a number above 0, at most {MAX_NUMBER:g}")
        return float(value)

    def size_or_null(self, name: str, absent: int | None) -> int | None:
        """Return an integer of at least 1, None if the field is null, or ``absent`` if it is missing."""
        if name not in self._values:
            return absent
        return self.size(name) if name in self else None

    def positive_or_null(self, name: str, absent: float | None) -> float | None:
        """Return a number above 0, None if the field is null, or ``absent`` if it is missing."""
        if name not in self._values:
            return absent
        return self.positive(name) if name in self else None

    def flag(self, name: str, default: bool = _MISSING) -> bool:  # noqa: FBT001 - a default like the others
        value = self._get(name, default)
        if not isinstance(value, bool):
            self._refuse(name, value, "true or false")
        return value

    def text(self, name: str, default: str = _MISSING) -> str:
        value = self._get(name, default)
        if not isinstance(value, str):
            self._refuse(name, value, "a text")
        return value

    def choice(self, name: str, known: Mapping[str, _Choice], default: str = _MISSING) -> _Choice:
        """Return what a name stands for in ``known``; raise `UnsupportedModelError` if it is not there."""
        value = self.text(name, default)
        if value not in known:
            self.refuse_unsupported(name, value, ", ".join(known))
        return known[value]

    def positives(self, name: str, length: int) -> list[float]:
        """Return a list of ``length`` numbers above 0."""
        value = self._list(name, length)
        if not all(_is_positive(v) for v in value):
            self._refuse(name, value, f"numbers above 0, at most {MAX_NUMBER:g}")
        return [float(v) for v in value]

    def names(self, name: str, length: int, known: Sequence[str]) -> list[str]:
        """Return a list of ``length`` names; raise `UnsupportedModelError` if one is not in ``known``."""
        value = self._list(name, length)
        for item in value:
            if item not in known:
                self.refuse_unsupported(name, item, ", ".join(known))
        return value

    def indices(self, name: str, stop: int) -> list[int]:
        """Return a list of integers in ``0 .. stop - 1``; an empty one if the field is missing."""
        value = self._get(name, [])
        if not isinstance(value, list) or any(type(one) is not int or not 0 <= one < stop for one in value):
            self._refuse(name, value, f"a list of integers in 0..{stop - 1}")
        return value

    def inside(self, name: str) -> ConfigFields:
        """Return the fields of an object; no fields if it is missing."""
        value = self._get(name, {})
        if not isinstance(value, dict):
            self._refuse(name, value, "an object")
        return ConfigFields(value, f"{self._path}{name}.")

    def refuse_unsupported(self, name: str, value: object, known: str) -> NoReturn:
        """Raise the error for a well-formed value that llmd does not support."""
        raise UnsupportedModelError(
            f"{CONFIG_FILE}: {self._path}{name} is {_shown(value)}, which llmd does not support; "
            f"supported: {known}",
            hint="install a plugin with an architecture that supports it, or use another model",
        )

    def contradict(self, message: str) -> NoReturn:
        """Raise the error for a value that is invalid or contradicts another field."""
        raise CheckpointError(
            message, file=CONFIG_FILE, hint="copy config.json again from where the model came from"
        )

    def is_text(self, name: str, text: str) -> bool:
        """Return whether the field is this text."""
        return self._values.get(name) == text

    def bounds(self, name: str) -> tuple[float, float | None]:
        """Return a list of two numbers of at least 0, the second None if it is infinite; by default none are
        bounds.
        """
        value = self._list(name, 2) if name in self else [0.0, math.inf]
        least, most = (math.inf if one == INFINITY else one for one in value)
        if not _is_bound(least) or not _is_bound(most) or least > most:
            self._refuse(name, value, "two numbers of at least 0 in ascending order")
        return float(least), None if math.isinf(most) else float(most)

    def _list(self, name: str, length: int) -> list[Any]:
        value = self._get(name, _MISSING)
        if not isinstance(value, list):
            self._refuse(name, value, f"a list of {length}")
        if len(value) != length:
            self.contradict(f"{self._path}{name} has {len(value)} entries, expected {length}")
        return value

    def _get(self, name: str, default: Any) -> Any:
        value = self._values.get(name)
        if value is not None:
            return value
        if default is _MISSING:
            self.contradict(f"{self._path}{name} is missing")
        return default

    def _refuse(self, name: str, value: object, expected: str) -> NoReturn:
        self.contradict(f"{self._path}{name} is {_shown(value)}, expected {expected}")


def _is_bound(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MAX_NUMBER


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
