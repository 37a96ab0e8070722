"""The simulated queue of a device: when layers run, when results are there, and how long nothing runs."""

from __future__ import annotations

from llmd.testing.null_timeline import NullTimeline


def test_steps_run_one_after_the_other() -> None:
    timeline = NullTimeline()
    runs = [timeline.submit(at, 2.0, None, waits=False) for at in (1.0, 1.5)]
    assert [run.ready_at for run in runs] == [3.0, 5.0]
    assert timeline.idle_s == 0.0
    late = timeline.submit(5.5, 2.0, None, waits=False)
    assert late.ready_at == 7.5
    assert timeline.idle_s == 0.5


def test_late_edits_and_masks_delay_results_if_they_come_after_the_layers() -> None:
    timeline = NullTimeline()
    early, late = (timeline.submit(0.0, 2.0, None, waits=True) for _ in range(2))
    assert [early.ready_at] == [None]
    timeline.complete(early, 1.0)
    assert early.ready_at == 2.0
    timeline.complete(late, 9.0)
    assert late.ready_at == 9.0


def test_the_device_runs_other_steps_while_a_step_waits() -> None:
    timeline = NullTimeline()
    waiting = timeline.submit(0.0, 2.0, None, waits=True)
    other = timeline.submit(0.0, 2.0, None, waits=False)
    assert other.ready_at == 4.0
    timeline.complete(waiting, 3.0)
    last = timeline.submit(3.5, 2.0, waiting, waits=False)
    assert last.ready_at == 6.0
    assert timeline.idle_s == 0.0


def test_a_step_that_is_fed_from_one_that_waits_leaves_the_device_idle() -> None:
    timeline = NullTimeline()
    waiting = timeline.submit(0.0, 2.0, None, waits=True)
    fed = timeline.submit(0.5, 2.0, waiting, waits=False)
    behind = timeline.submit(0.5, 2.0, None, waits=False)
    assert [fed.ready_at, behind.ready_at] == [None, None]
    timeline.complete(waiting, 2.75)
    assert fed.ready_at == 4.75
    assert behind.ready_at == 6.75
    assert timeline.idle_s == 0.75


def test_a_step_that_is_given_up_holds_up_no_other() -> None:
    timeline = NullTimeline()
    given_up = timeline.submit(0.0, 2.0, None, waits=True)
    fed = timeline.submit(0.0, 2.0, given_up, waits=True)
    timeline.complete(fed, 1.0)
    timeline.complete(given_up, 1.0)
    assert timeline.submit(4.0, 2.0, None, waits=False).ready_at == 6.0


def test_completing_twice_changes_nothing() -> None:
    timeline = NullTimeline()
    run = timeline.submit(0.0, 2.0, None, waits=True)
    timeline.complete(run, 3.0)
    timeline.complete(run, 8.0)
    assert run.ready_at == 3.0


def test_a_run_does_not_hold_the_runs_before_it() -> None:
    timeline = NullTimeline()
    first = timeline.submit(0.0, 2.0, None, waits=False)
    assert timeline.submit(0.0, 2.0, first, waits=False).fed_from is None
