from __future__ import annotations

from llmd.registry.pacing import paced
from llmd.registry.pull import PullStep


def steps(*completed: int, digest: str = "sha256:a") -> list[PullStep]:
    return [PullStep("pulling", digest, 100, done) for done in completed]


def test_first_and_last_step_of_each_file_come_through() -> None:
    all_steps = [
        PullStep("pulling manifest"),
        *steps(0, 1, 2, 100),
        *steps(0, 7, 9, digest="b"),
        PullStep("success"),
    ]
    shown = list(paced(iter(all_steps), clock=lambda: 0.0))
    assert shown == [
        PullStep("pulling manifest"),
        *steps(0, 100),
        *steps(0, 9, digest="b"),
        PullStep("success"),
    ]


def test_between_them_one_in_a_while() -> None:
    now = iter(range(100))
    shown = list(paced(iter(steps(*range(12))), every_s=5, clock=lambda: next(now)))
    assert [step.completed for step in shown] == [0, 5, 10, 11]


def test_the_last_step_is_never_held_back() -> None:
    assert list(paced(iter(steps(0, 1)), clock=lambda: 0.0)) == steps(0, 1)
    assert list(paced(iter([]))) == []
