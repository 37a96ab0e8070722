"""Numeric fields: their range, and values with a special meaning."""

from __future__ import annotations

from msgspec import Struct

from llmd.requests.fields import RequestFields


class Number(Struct, frozen=True):
    """Reads a numeric field: call it with the fields of a request and the field's name."""

    low: float
    high: float
    whole: bool = False
    """Only integers are allowed."""
    excludes_low: bool = False
    """``low`` itself is out of range."""
    floor: float | None = None
    """Smaller values count as this one."""
    absent: float | None = None
    """This value counts as not given."""
    off: tuple[float, ...] = ()
    """Values that change nothing."""
    narrows: bool = False
    """The field restricts which tokens are sampled, so that it has no effect on a beam search."""
    aliases: tuple[str, ...] = ()
    """Other names of the field; the field's own name wins."""

    def __call__(self, fields: RequestFields, name: str) -> float | None:
        """Return the value; None: not given.

        Raises:
            BadRequestError: it is not a number, or out of range.
        """
        values = [self._read(fields, one) for one in (name, *self.aliases)]
        value = next((value for value in values if value is not None), None)
        if value is None or value == self.absent:
            return None
        return value if self.floor is None else max(value, self.floor)

    @property
    def range(self) -> str:
        """The range in words."""
        if self.excludes_low:
            return f"above {self.low:g} and at most {self.high:g}"
        return f"{self.low:g} to {self.high:g}"

    def _read(self, fields: RequestFields, name: str) -> float | None:
        if self.whole:
            value: float | None = fields.integer(name, int(self.low), int(self.high))
        else:
            value = fields.number(name, self.low, self.high)
        if self.excludes_low and value == self.low:
            raise fields.invalid(name, self.range)
        return value
