from __future__ import annotations

import pytest

from llmd.cli.daemon_logs.line_filter import LineFilter, level_of
from llmd.cli.daemon_logs.options import LogView

TEXT = """\
words of a library
2026-11-23T12:00:00.000+01:00 info request request_id=req_1 path=/v1/models
2026-11-23T12:00:01.000+01:00 error engine_died model=tiny
    last_lines:
        no memory
2026-11-23T12:00:02.000+01:00 warning slow request_id=req_12
2026-11-23T12:00:03.000+01:00 debug detail
""".splitlines()
JSON = [
    '{"time":"2026-11-23T12:00:00.000+00:00","level":"info","event":"request","request_id":"req_1"}',
    '{"time":"2026-11-23T12:00:01.000+00:00","level":"error","event":"engine_died"}',
    "{no JSON",
]


def chosen(lines: list[str], *, level: str | None = None, request: str | None = None) -> list[int]:
    passes = LineFilter(LogView(level=level, request=request))
    return [number for number, line in enumerate(lines) if passes(line)]


@pytest.mark.parametrize(
    ("level", "numbers"),
    [
        ("error", [2, 3, 4]),
        ("warning", [2, 3, 4, 5]),
        ("info", [1, 2, 3, 4, 5]),
        ("debug", [1, 2, 3, 4, 5, 6]),
    ],
)
def test_a_level_takes_events_of_it_and_above_with_the_lines_below_them(
    level: str, numbers: list[int]
) -> None:
    assert chosen(TEXT, level=level) == numbers


def test_without_conditions_every_line_is_shown() -> None:
    assert chosen(TEXT) == list(range(7))


def test_a_request_is_found_by_its_whole_id() -> None:
    assert chosen(TEXT, request="req_1") == [1]
    assert chosen(TEXT, request="req_12", level="error") == []


def test_json_is_understood() -> None:
    assert chosen(JSON, level="error") == [1, 2]  # what is no event belongs to the one above
    assert chosen(JSON, request="req_1") == [0]
    assert [level_of(line) for line in JSON] == ["info", "error", None]
