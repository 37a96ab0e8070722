"""Times as Go writes them."""

from __future__ import annotations

from datetime import UTC, datetime

NS = 1_000_000_000


def rfc3339(time_ns: int) -> str:
    """A time since 1970 with nanoseconds, in UTC."""
    seconds, ns = divmod(time_ns, NS)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{ns:09d}Z"


def rfc3339_of(moment: datetime) -> str:
    """The same of a `datetime`, which knows microseconds."""
    utc = moment.astimezone(UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond * 1000:09d}Z"
