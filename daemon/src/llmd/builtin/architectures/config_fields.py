"""Typed reading of ``config.json``: every field that is absent or ill-typed is an error that names it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from llmd.api import CheckpointError, UnsupportedModelError

CONFIG_FILE = "config.json"
MAX_SIZE = 1 << 24
"""Larger widths, vocabularies and context windows are taken for damage: no plan is built of them."""
MAX_NUMBER = 1e12

_MISSING: Any = object()
_Choice = TypeVar("_Choice")


class ConfigFields:
    """The fields of a configuration, or of one of its objects; ``path`` stands before names in messages.

    A field that is null counts as absent. ``default`` is what an absent field means; without one it is required.
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
        """An integer of 1 or more."""
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= at_most:
            self._refuse(name, value, f"an integer in 1..{at_most}")
        return value

    def count(self, name: str, default: int = _MISSING) -> int:
        """An integer of 0 or more."""
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SIZE:
            self._refuse(name, value, f"an integer in 0..{MAX_SIZE}")
        return value

    def positive(self, name: str, default: float = _MISSING) -> float:
        """A number above 0."""
        value = self._get(name, default)
        if not _is_positive(value):
            self._refuse(name, value, f"a number above 0, at most {MAX_NUMBER:g}")
        return float(value)

    def size_or_null(self, name: str, absent: int | None) -> int | None:
        """An integer of 1 or more, or None where the field is null; here an absent field means something else."""
        if name not in self._values:
            return absent
        return self.size(name) if name in self else None

    def positive_or_null(self, name: str, absent: float | None) -> float | None:
        """A number above 0, or None where the field is null; here an absent field means something else."""
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
        """The meaning of a name; `UnsupportedModelError` where nothing here knows it."""
        value = self.text(name, default)
        if value not in known:
            self.refuse_unsupported(name, value, ", ".join(known))
        return known[value]

    def positives(self, name: str, length: int) -> list[float]:
        """A list of ``length`` numbers above 0."""
        value = self._list(name, length)
        if not all(_is_positive(v) for v in value):
            self._refuse(name, value, f"numbers above 0, at most {MAX_NUMBER:g}")
        return [float(v) for v in value]

    def names(self, name: str, length: int, known: Sequence[str]) -> list[str]:
        """A list of ``length`` names that are all known here."""
        value = self._list(name, length)
        for item in value:
            if item not in known:
                self.refuse_unsupported(name, item, ", ".join(known))
        return value

    def inside(self, name: str) -> ConfigFields:
        """The fields of an object; none where it is absent."""
        value = self._get(name, {})
        if not isinstance(value, dict):
            self._refuse(name, value, "an object")
        return ConfigFields(value, f"{self._path}{name}.")

    def refuse_unsupported(self, name: str, value: object, known: str) -> NoReturn:
        """Raise the error of a value that is well-formed, but that nothing here computes."""
        raise UnsupportedModelError(
            f"{CONFIG_FILE}: {self._path}{name} is {_shown(value)}, which llmd does not compute; known here: {known}",
            hint="install a plugin with an architecture that does, or take another model",
        )

    def contradict(self, message: str) -> NoReturn:
        """Raise the error of fields that cannot be true together."""
        raise CheckpointError(
            message, file=CONFIG_FILE, hint="take config.json from where the model came from"
        )

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


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MAX_NUMBER


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
