from __future__ import annotations

from llmd_tui.screens.logs.records import KEPT, MISSING, Record, Records


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


def received(records: Records, *numbers: int, day: int = 25) -> list[str]:
    """What is shown of records with these numbers; a day has a daemon of its own."""
    shown = []
    for number in numbers:
        time = f"2026-11-{day}T20:00:{number:02d}.000+00:00"
        shown += [
            one.event for one in records.received(Record(time, "info", f"{day}/{number}", number=number))
        ]
    return shown


def test_a_stream_may_repeat_what_is_known_and_has_all_of_one_moment() -> None:
    records = Records()
    assert received(records, 3, 4) == ["25/3", "25/4"]
    assert received(records, 3, 4, 5) == ["25/5"]
    same = [Record("2026-11-26", "info", f"same {number}", number=number) for number in (6, 7)]
    assert [one.event for new in same for one in records.received(new)] == ["same 6", "same 7"]


def test_a_line_says_where_records_may_be_missing() -> None:
    records = Records()
    records.level = "error"
    records.wanted = "25/"
    received(records, 3, 4)
    received(records, 6)  # the daemon has dropped the fifth
    received(records, 1, 2, day=26)  # another daemon, which has told all
    records.wanted, records.level = "", "info"
    gap = MISSING.event
    assert [one.event for one in records.shown] == ["25/3", "25/4", gap, "25/6", gap, "26/1", "26/2"]
    assert MISSING.text.startswith("--- Records may be missing")
