"""The field ``keep_alive`` of every dialect: how long a model stays loaded after this request."""

from __future__ import annotations

from llmd.config.durations import parse_duration
from llmd.requests.fields import RequestFields

MAX_KEEP_ALIVE_S = 10 * 365 * 86400.0
"""A longer time would overflow a timer; it counts as unlimited."""


def read_keep_alive(fields: RequestFields) -> float | None:
    """Return the keep-alive in seconds: negative for unlimited, 0 until this request ends, None if not given.

    Raises:
        BadRequestError: it is neither a number nor a duration as Go writes it.
    """
    value = fields.value("keep_alive")
    if value is None:
        return None
    try:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        seconds = float(value) if is_number else parse_duration(str(value))
    except (ValueError, OverflowError):
        raise fields.invalid("keep_alive", "seconds or a duration such as 10m") from None
    return -1.0 if seconds > MAX_KEEP_ALIVE_S else seconds
