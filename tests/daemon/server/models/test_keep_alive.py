from __future__ import annotations

import pytest

from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.models.keep_alive import read_keep_alive


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (300, 300),
        (1.5, 1.5),
        ("10m", 600),
        ("1h30m", 5400),
        (0, 0),
        ("0", 0),
        (-1, -1),
        ("-1m", -60),
        (None, None),
    ],
)
def test_numbers_are_seconds_and_texts_go_durations(value: object, seconds: float | None) -> None:
    assert read_keep_alive(RequestFields({"keep_alive": value})) == seconds


@pytest.mark.parametrize("value", ["soon", "", True, [5], "5 parsecs"])
def test_what_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(BadRequestError, match="keep_alive must be seconds or a duration such as 10m"):
        read_keep_alive(RequestFields({"keep_alive": value}))


def test_longer_than_any_timer_is_for_ever() -> None:
    assert read_keep_alive(RequestFields({"keep_alive": 1e300})) == -1
    assert read_keep_alive(RequestFields({"keep_alive": "9999999h"})) == -1
