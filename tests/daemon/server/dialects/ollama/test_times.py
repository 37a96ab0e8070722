from __future__ import annotations

from datetime import datetime, timedelta, timezone

from llmd.server.dialects.ollama.times import rfc3339, rfc3339_of


def test_times_have_nanoseconds_and_are_in_utc() -> None:
    assert rfc3339(1_700_000_000_000_000_042) == "2023-11-14T22:13:20.000000042Z"
    east = timezone(timedelta(hours=2))
    assert rfc3339_of(datetime(2024, 1, 1, 1, 0, 0, 5, tzinfo=east)) == "2023-12-31T23:00:00.000005000Z"
