"""Reads the fields of a request body one by one;
fields that are never read are reported as ignored in the reply.

Rules of every dialect: null means absent, a number or boolean may be given as a string, and the error for a
value out of range names the range.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from llmd.api.errors import RequestError


class BadRequestError(RequestError):
    """A request that is refused."""

    def __init__(self, message: str, *, code: str, param: str | None = None, hint: str = "") -> None:
        """``code`` is the HTTP API's name of the reason."""
        super().__init__(message, param=param, hint=hint)
        self.code = code


class RequestFields:
    """Reads a JSON object. Errors name the field;
    ``prefix`` is put before the names of a nested object's fields.
    """

    def __init__(self, body: Mapping[str, Any], prefix: str = "") -> None:
        self._values = {name: value for name, value in body.items() if value is not None}
        self._unread = set(self._values)
        self._prefix = prefix

    @property
    def ignored(self) -> tuple[str, ...]:
        """Names of fields that were given and not read."""
        return tuple(sorted(f"{self._prefix}{name}" for name in self._unread))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all fields that were given, for objects whose names are data."""
        return tuple(self._values)

    def value(self, name: str) -> Any:
        """Return the unchecked value of a field, or None."""
        self._unread.discard(name)
        return self._values.get(name)

    def integer(self, name: str, low: int, high: int) -> int | None:
        """Read an integer in ``[low, high]``; ``5.0`` and ``"5"`` are integers too."""
        number = self._number(name, "an integer")
        if number is None:
            return None
        if isinstance(number, float) and not number.is_integer():
            raise self.invalid(name, "an integer")
        return int(self._in_range(name, number, low, high))

    def number(self, name: str, low: float, high: float) -> float | None:
        """Read a number in ``[low, high]``."""
        number = self._number(name, "a number")
        return None if number is None else float(self._in_range(name, number, low, high))

    def boolean(self, name: str, *, default: bool = False) -> bool:
        """Read a boolean; ``"true"``, ``"false"``, 1 and 0 are booleans too."""
        value = self.value(name)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        known = {"true": True, "1": True, "false": False, "0": False}
        if str(value).lower() not in known:
            raise self.invalid(name, "true or false")
        return known[str(value).lower()]

    def text(self, name: str) -> str | None:
        """Read a string."""
        value = self.value(name)
        if value is not None and not isinstance(value, str):
            raise self.invalid(name, "a string")
        return value

    def required_text(self, name: str) -> str:
        """Read a string that must not be absent or empty."""
        value = self.text(name)
        if not value:
            param = f"{self._prefix}{name}"
            raise BadRequestError(f"{param} is required", code="invalid_value", param=param)
        return value

    def repeated(self, name: str) -> str | None:
        """Read a string that is only repeated in the reply: the field still counts as ignored."""
        value = self._values.get(name)
        if value is not None and not isinstance(value, str):
            raise self.invalid(name, "a string")
        return value

    def nested(self, name: str) -> RequestFields:
        """Read an object; empty if it is absent."""
        value = self.value(name)
        if value is not None and not isinstance(value, dict):
            raise self.invalid(name, "an object")
        return RequestFields(value or {}, f"{self._prefix}{name}.")

    def strings(self, name: str, most: int) -> tuple[str, ...]:
        """Read a string or a list of at most ``most`` strings."""
        value = self.value(name)
        values = [] if value is None else [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
            raise self.invalid(name, "a string or a list of strings")
        if len(values) > most:
            raise self.invalid(name, f"at most {most} strings")
        return tuple(values)

    def token_ids(self, name: str) -> tuple[int, ...]:
        """Read a list of token ids."""
        value = self.value(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(is_token_id(item) for item in value):
            raise self.invalid(name, "a list of token ids")
        return tuple(value)

    def refuse(self, name: str, neutral: Collection[Any], why: str) -> None:
        """Refuse a field that cannot be honoured, unless its value changes nothing.

        Raises:
            BadRequestError: the value is not in ``neutral`` and is not an empty string, list or object.
        """
        value = self.value(name)
        if value is None or value in ("", [], {}) or any(_same(value, item) for item in neutral):
            return
        raise BadRequestError(
            f"{self._prefix}{name} is not supported: {why}",
            code="unsupported_parameter",
            param=f"{self._prefix}{name}",
            hint="leave it out",
        )

    def invalid(self, name: str, expected: str) -> BadRequestError:
        """Return the error for a field whose value is not ``expected``."""
        value = repr(self._values.get(name))
        return BadRequestError(
            f"{self._prefix}{name} must be {expected}, not {value if len(value) <= 80 else value[:80] + '…'}",
            code="invalid_value",
            param=f"{self._prefix}{name}",
        )

    def _number(self, name: str, expected: str) -> int | float | None:
        value = self.value(name)
        if isinstance(value, str):
            value = _parsed(value)
        elif value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.invalid(name, expected)
        return value

    def _in_range(self, name: str, number: float, low: float, high: float) -> float:
        if not low <= number <= high:
            raise self.invalid(name, f"between {low} and {high}")
        return number


def is_token_id(value: object) -> bool:
    """Whether a JSON value can be a token id."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31


def _parsed(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _same(value: Any, neutral: Any) -> bool:
    """Whether two values are equal, where ``"0"`` equals 0 but true does not equal 1."""
    if isinstance(value, str) and isinstance(neutral, int | float) and not isinstance(neutral, bool):
        value = _parsed(value)
    return isinstance(value, bool) == isinstance(neutral, bool) and bool(value == neutral)
