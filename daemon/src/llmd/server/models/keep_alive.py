"""The field ``keep_alive``, which every dialect takes: how long a model stays loaded after this request."""

from __future__ import annotations

from llmd.config.durations import parse_duration
from llmd.requests.fields import RequestFields

MAX_KEEP_ALIVE_S = 10 * 365 * 86400.0
"""Beyond that a timer would overflow; longer is as good as for ever."""


def read_keep_alive(fields: RequestFields) -> float | None:
    """Seconds; negative for ever, 0 until this request ends, None where the request does not say.

    Raises:
        BadRequestError: it is neither a number nor a duration of Go's form.
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
