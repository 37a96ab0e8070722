from __future__ import annotations

import io

from llmd.cli.check_progress import CLEAR, CheckProgress


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_terminal_shows_how_many_cases_are_done_and_the_time_that_is_left() -> None:
    screen, clock = Screen(), Clock()
    for cost in CheckProgress(screen, clock).over([1, 9, 90], lambda cost: cost):
        clock.now_s += cost
    assert screen.getvalue().split(CLEAR) == [
        "",
        "0 of 3 cases",
        "1 of 3 cases",  # no estimate from 1 % of the work
        "2 of 3 cases, about 1 min 30 s left",
        "",
    ]


def test_the_line_is_gone_before_something_else_is_written_and_when_the_run_is_given_up() -> None:
    screen = Screen()
    progress = CheckProgress(screen)
    cases = progress.over([1, 1], lambda cost: cost)
    next(cases)
    progress.clear()
    screen.write("a result\n")
    next(cases)
    del cases
    assert screen.getvalue().startswith(f"{CLEAR}0 of 2 cases{CLEAR}a result\n{CLEAR}1 of 2 cases, about ")
    assert screen.getvalue().endswith(CLEAR)


def test_a_pipe_gets_nothing() -> None:
    stream = io.StringIO()
    progress = CheckProgress(stream)
    assert list(progress.over([1, 2], lambda cost: cost)) == [1, 2]
    progress.clear()
    assert stream.getvalue() == ""
