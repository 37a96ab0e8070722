from __future__ import annotations

from llmd_tui.screens.logs.records import KEPT, Record, Records


def record(level: str = "info", event: str = "request", number: int = 0, **fields: object) -> Record:
    return Record(f"2026-11-25T20:00:00.{number:03d}+00:00", level, event, None, fields)


def test_a_line_has_the_time_of_day_and_the_fields_that_say_something() -> None:
    one = Record(
        "2026-11-25T20:01:02.345+00:00",
        "warning",
        "engine_died",
        "guide",
        {"pid": 7, "reason": None, "on": ["a"]},
    )
    assert one.text == "20:01:02.345 warning guide engine_died pid=7 on=['a']"


def test_levels_go_down_and_begin_again_with_errors() -> None:
    records = Records()
    records.add([record("debug"), record("info"), record("error", "crash")])
    assert [one.level for one in records.shown] == ["info", "error"]
    assert records.lower() == "debug"
    assert len(records.shown) == 3
    assert records.lower() == "error"
    assert [one.event for one in records.shown] == ["crash"]


def test_only_records_with_the_text_are_shown() -> None:
    records = Records()
    records.wanted = "R7"
    assert records.add([record(id="r6"), record(id="r7")])[0].fields == {"id": "r7"}


def test_unknown_levels_are_never_hidden() -> None:
    records = Records()
    records.level = "error"
    assert records.add([record("fatal")])


def test_the_oldest_records_make_room() -> None:
    records = Records()
    records.add(record(event=str(number)) for number in range(KEPT + 3))
    assert (records.shown[0].event, len(records.shown)) == ("3", KEPT)
