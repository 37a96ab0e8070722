"""Times in Go's format."""

from __future__ import annotations

from datetime import UTC, datetime

NS = 1_000_000_000


def rfc3339(time_ns: int) -> str:
    """Format nanoseconds since 1970 as UTC."""
    seconds, ns = divmod(time_ns, NS)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{ns:09d}Z"


def rfc3339_of(moment: datetime) -> str:
    """Format a `datetime`, with microseconds, in the same way."""
    utc = moment.astimezone(UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond * 1000:09d}Z"
