from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest

from llmd.cli.pull_progress import bars, lines, rate_of, shown

MIB = 1 << 20


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def steps(*completed: int, file: str = "a.safetensors") -> list[dict[str, Any]]:
    return [
        {"status": "pulling a", "digest": file, "total": 100 * MIB, "completed": done * MIB, "file": file}
        for done in completed
    ]


END = {"status": "success", "model": "org/name"}


def test_a_pipe_gets_a_line_each_tenth_and_the_ends() -> None:
    stream = io.StringIO()
    assert lines([*steps(*range(101)), END], stream, clock=lambda: 0.0) == "org/name"
    told = stream.getvalue().splitlines()
    assert told[:3] == [
        "a.safetensors: 0 B of 100.0 MiB",
        "a.safetensors: 10.0 MiB of 100.0 MiB",
        "a.safetensors: 20.0 MiB of 100.0 MiB",
    ]
    assert told[-2:] == ["a.safetensors: 100.0 MiB of 100.0 MiB", "success"]
    assert len(told) == 12


def test_a_slow_pull_says_every_ten_seconds_that_it_goes_on() -> None:
    stream = io.StringIO()
    now = iter(range(0, 1000, 4))
    lines(steps(0, 1, 2, 3, 4, 5, 6), stream, clock=lambda: next(now))
    assert 2 <= len(stream.getvalue().splitlines()) < 7


def test_a_silence_repeats_nothing() -> None:
    stream = io.StringIO()
    clock = iter(range(0, 10_000, 60))
    lines([*steps(50, 50, 50, 50)], stream, clock=lambda: next(clock))
    assert len(stream.getvalue().splitlines()) == 1


def test_a_terminal_gets_a_bar_for_each_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    screen = Screen()
    both = [{"status": "pulling manifest"}, *steps(0, 100), *steps(0, 50, file="b.safetensors"), END]
    assert bars(both, screen) == "org/name"
    assert "a.safetensors" in screen.getvalue()
    assert "100.0 MiB of 100.0 MiB" in screen.getvalue()
    assert "b.safetensors" in screen.getvalue()


def test_a_rate_is_shown_once_it_is_known() -> None:
    assert (rate_of(None), rate_of(2.5 * MIB)) == ("", "2.5 MiB/s")


def test_the_stream_decides_and_quiet_shows_nothing() -> None:
    def again() -> Iterator[dict[str, Any]]:
        return iter([*steps(0, 100), END])

    pipe, screen, silent = io.StringIO(), Screen(), Screen()
    assert shown(again(), pipe) == shown(again(), screen) == shown(again(), silent, quiet=True) == "org/name"
    assert "━" not in pipe.getvalue()
    assert "━" in screen.getvalue()
    assert silent.getvalue() == ""
