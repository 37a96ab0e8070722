"""Log lines have the events with their fields, at the requested verbosity."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from llmd.cli.log_file import RotatingHandler
from llmd.cli.logs import DAEMON, EventFormatter, JsonFormatter, configure, log_as_daemon, set_level
from llmd.config.log_place import LogPlace


@pytest.fixture(autouse=True)
def untouched_root() -> Iterator[None]:
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    # A daemon of another test in this process lets its loggers pass all from INFO on.
    levels = {name: logging.getLogger(name).level for name in ("llmd", DAEMON)}
    for name in levels:
        logging.getLogger(name).setLevel(logging.NOTSET)
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    root.setLevel(before[0])
    root.handlers[:] = before[1]


def text_of(record: logging.LogRecord) -> str:
    """Return the line without its time."""
    return EventFormatter().format(record).split(" ", 1)[1]


@pytest.mark.parametrize(
    ("verbosity", "expected"),
    [(0, ["e"]), (1, ["i", "w", "e"]), (2, ["d", "i", "w", "e"]), (9, ["d", "i", "w", "e"])],
)
def test_verbosity_chooses_the_events(
    verbosity: int, expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    configure(verbosity)
    log = logging.getLogger("llmd.made")
    for level, event in ((10, "d"), (20, "i"), (30, "w"), (40, "e")):
        log.log(level, event)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [line.split()[-1] for line in captured.err.splitlines()] == expected


@pytest.mark.parametrize("terminal", [False, True])
def test_a_daemon_that_keeps_its_records_prints_no_more_than_before(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, terminal: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    configure(0)
    llmd = logging.getLogger("llmd")
    before = llmd.level
    llmd.setLevel(logging.INFO)
    logging.getLogger("llmd.made").info("i")
    logging.getLogger(DAEMON).info("serving")
    logging.getLogger("llmd.made").error("e")
    llmd.setLevel(before)
    printed = [line.split()[-1] for line in capsys.readouterr().err.splitlines()]
    assert printed == (["e"] if terminal else ["serving", "e"])


def test_configuring_twice_says_everything_once(capsys: pytest.CaptureFixture[str]) -> None:
    configure(0)
    configure(0)
    logging.getLogger("llmd.made").error("once")
    assert capsys.readouterr().err.count("once") == 1


def test_fields_follow_the_event() -> None:
    record = logging.makeLogRecord(
        {"msg": "block_evicted", "levelname": "INFO", "block": 7, "reason": "full pool"}
    )
    assert text_of(record) == 'info block_evicted block=7 reason="full pool"'


def test_a_line_has_its_date_and_offset() -> None:
    record = logging.makeLogRecord({"msg": "serving", "levelname": "INFO"})
    record.created = 1.5
    when = datetime.fromisoformat(EventFormatter().format(record).split(" ", 1)[0])
    assert when == datetime.fromtimestamp(1.5, UTC)
    assert when.tzinfo is not None


def test_values_are_written_without_python() -> None:
    fields = {
        "place": Path("/x"),
        "key": None,
        "forced": True,
        "ms": 1.5,
        "models": ("guide", "org/tiny"),
        "none": (),
        "reason": 'it said "no"',
        "sizes": {"kv": 3},
    }
    record = logging.makeLogRecord({"msg": "made", "levelname": "INFO", **fields})
    assert text_of(record) == (
        "info made place=/x forced=true ms=1.5 models=guide,org/tiny "
        'none="" reason="it said \\"no\\"" sizes={"kv": 3}'
    )


def test_several_lines_stand_below_their_event() -> None:
    fields = {"model": "tiny", "last_lines": ("no driver found", "Aborted"), "traceback": "a\n b"}
    record = logging.makeLogRecord({"msg": "engine_died", "levelname": "ERROR", **fields})
    assert text_of(record) == (
        "error engine_died model=tiny\n"
        "    last_lines:\n        no driver found\n        Aborted\n"
        "    traceback:\n        a\n         b"
    )


@pytest.mark.parametrize(
    ("terminal", "verbosity", "told"), [(False, 0, True), (True, 0, False), (True, 1, True)]
)
def test_a_log_has_the_start_of_the_daemon_and_a_terminal_has_its_line(
    monkeypatch: pytest.MonkeyPatch, *, terminal: bool, verbosity: int, told: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    configure(verbosity)
    assert logging.getLogger(DAEMON).isEnabledFor(logging.INFO) is told
    assert logging.getLogger("llmd.server.app").isEnabledFor(logging.INFO) is bool(verbosity)


def test_the_level_of_the_settings_and_that_of_the_flags_are_both_logged() -> None:
    root = logging.getLogger()
    levels = {}
    for verbosity, level in ((0, "error"), (0, "warning"), (1, "warning"), (1, "debug")):
        set_level(verbosity, level)
        levels[verbosity, level] = root.level
    assert list(levels.values()) == [logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_daemon_logs_to_the_journal_with_priorities_and_to_a_file_that_rotates(
    tmp_path: Path, log_format: str
) -> None:
    configure(1, log_format)
    log_as_daemon(LogPlace("journal"))
    (handler,) = logging.getLogger().handlers
    line = handler.format(logging.makeLogRecord({"msg": "serving", "levelname": "INFO", "levelno": 20}))
    assert line.startswith("<6>info serving" if log_format == "text" else '<6>{"time":')
    configure(1, log_format)
    log_as_daemon(LogPlace("file", str(tmp_path / "daemon.log")))
    (handler,) = logging.getLogger().handlers
    assert isinstance(handler, RotatingHandler)
    configure(1, log_format)
    (before,) = logging.getLogger().handlers
    log_as_daemon(LogPlace("other"))
    assert logging.getLogger().handlers == [before]


def test_a_traceback_follows_its_event() -> None:
    try:
        raise ValueError("deep inside")
    except ValueError as error:
        record = logging.makeLogRecord(
            {"msg": "failed", "exc_info": (type(error), error, error.__traceback__)}
        )
    assert EventFormatter().format(record).endswith("ValueError: deep inside")


def test_json_has_the_fields_of_an_event_in_one_line() -> None:
    record = logging.LogRecord("llmd", logging.WARNING, "x.py", 1, "plugin_set_aside", None, None)
    record.created = 1.5
    vars(record).update(reason="no\nsuch driver", place=Path("/x"), tokens=7)
    line = JsonFormatter().format(record)
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "1970-01-01T00:00:01.500+00:00",
        "level": "warning",
        "event": "plugin_set_aside",
        "reason": "no\nsuch driver",
        "place": "/x",
        "tokens": 7,
    }


def test_json_keeps_the_traceback() -> None:
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        record = logging.LogRecord("llmd", logging.ERROR, "x.py", 1, "failed", None, sys.exc_info())
    assert "ZeroDivisionError" in json.loads(JsonFormatter().format(record))["traceback"]
