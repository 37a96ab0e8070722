"""The front reads exactly the events that an engine logs."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from llmd.engine.log_lines import EventLines, LoggedEvent, read_event


def record(**fields: object) -> logging.LogRecord:
    made = logging.LogRecord("llmd.engine", logging.WARNING, "x.py", 1, "kv_spool_dropped", None, None)
    vars(made).update(fields)
    return made


def test_an_event_is_one_line_and_comes_back_with_its_fields() -> None:
    line = EventLines().format(record(reason="two\nlines", blocks=3, place=Path("/x")))
    assert "\n" not in line
    event = LoggedEvent(
        "kv_spool_dropped", logging.WARNING, {"reason": "two\nlines", "blocks": 3, "place": "/x"}
    )
    assert read_event(line) == event
    assert (
        str(LoggedEvent("cpu_opened", 20, {"isa": "avx2", "threads": 2})) == "cpu_opened isa=avx2 threads=2"
    )


def test_a_traceback_is_a_field() -> None:
    try:
        raise ValueError("deep inside")
    except ValueError:
        made = record(exc_info=sys.exc_info())
    event = read_event(EventLines().format(made))
    assert event is not None
    assert event.fields["traceback"].endswith("ValueError: deep inside")


@pytest.mark.parametrize("line", ["", "Segmentation fault", "{}", "[1]", '{"event": 3}', '{"event": "x"}'])
def test_other_text_is_no_event(line: str) -> None:
    assert read_event(line) is None


def test_fields_that_every_record_has_are_left_out() -> None:
    event = read_event('{"event": "x", "level": 20, "fields": {"message": "y", "args": [], "blocks": 1}}')
    assert event is not None
    assert event.fields == {"blocks": 1}


def test_a_signal_shows_what_a_loop_runs_and_does_not_end_it() -> None:
    code = """
import os
from llmd.engine.log_lines import STACKS_SIGNAL, log_stacks_on_signal
log_stacks_on_signal()
def endless_loop():
    os.kill(os.getpid(), STACKS_SIGNAL)
endless_loop()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert " in endless_loop" in done.stderr
