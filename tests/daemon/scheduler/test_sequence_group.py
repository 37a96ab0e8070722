"""Sequences that run, wait and are preempted together."""

from __future__ import annotations

from llmd.scheduler.scheduler import Scheduler
from llmd.scheduler.sequence import Sequence
from tests.daemon.scheduler.groups import lead
from tests.daemon.scheduler.test_scheduler import done, make, make_scheduler, rows, step


def grown(scheduler: Scheduler, *tails: tuple[int, ...], width: int = 3, prompt_len: int = 5) -> Sequence:
    """Return a running group with a prompt and these outputs of equal length, each a fork of the first."""
    first = lead(make(1, prompt_len, max_tokens=30), width)
    scheduler.add(first)
    while not scheduler.running or scheduler._pager.length(1) < prompt_len:
        step(scheduler)
    assert first.group is not None
    forks = [(first, first.fork(-place)) for place in range(2, len(tails) + 1)]
    scheduler.renew(first.group, [first, *(child for _, child in forks)], forks)
    for member, tail in zip(first.group.members, tails, strict=True):
        member.tokens += tail
    return first


def test_members_share_the_blocks_of_what_they_have_in_common() -> None:
    scheduler = make_scheduler()
    grown(scheduler, (1,), (2,), (3,), prompt_len=32)
    pool = scheduler._pager.pools[0]
    assert step(scheduler) == [(1, 32, 1), (-2, 32, 1), (-3, 32, 1)]
    assert pool.num_blocks - pool.num_free == 2 + 3


def test_a_member_has_no_row_before_its_next_token_is_chosen() -> None:
    scheduler = make_scheduler()
    group = grown(scheduler, (1,), (2,)).group
    first = scheduler.plan()
    assert rows(first) == [(1, 5, 1), (-2, 5, 1)]
    assert rows(scheduler.plan()) == []
    done(scheduler, first)
    assert rows(scheduler.plan()) == []
    assert group is not None
    scheduler.renew(group, group.members, [])
    for member in group.members:
        member.tokens.append(7)
    assert rows(scheduler.plan()) == [(1, 6, 1), (-2, 6, 1)]


def test_it_takes_the_slots_of_all_that_it_may_have() -> None:
    scheduler = make_scheduler(slots=4)
    scheduler.add(lead(make(1, 4), 3))
    for request_id in (2, 3):
        scheduler.add(make(request_id, 4))
    assert step(scheduler) == [(1, 0, 4), (2, 0, 4)]
    assert [one.request_id for one in scheduler.waiting] == [3]


def test_it_waits_until_there_are_slots_for_all() -> None:
    scheduler = make_scheduler(slots=4)
    for request_id in (1, 2):
        scheduler.add(make(request_id, 4, max_tokens=2))
    scheduler.add(lead(make(3, 4), 3))
    assert step(scheduler) == [(1, 0, 4), (2, 0, 4)]
    assert step(scheduler) == [(1, 4, 1), (2, 4, 1)]
    assert step(scheduler) == [(3, 0, 4)]


def test_it_gives_way_whole_and_what_its_members_have_in_common_is_computed_once() -> None:
    scheduler = make_scheduler(blocks=8)
    first = grown(scheduler, (1, 1, 1, 2), (1, 1, 1, 3), (1, 1, 1, 4))
    scheduler.add(make(5, 5, priority=-1, max_tokens=90))
    while not scheduler.preemptions:
        step(scheduler)
    assert first.ended
    assert first.group is not None
    assert [one.request_id for one in scheduler.waiting] == [1]
    assert [one.tokens[5:] for one in first.group.members] == [[1, 1, 1, 2], [1, 1, 1, 3], [1, 1, 1, 4]]
    while scheduler.running:
        step(scheduler)
    assert step(scheduler) == [(1, 0, 8)]
    assert step(scheduler) == [(1, 8, 1), (-2, 8, 1), (-3, 8, 1)]


def test_after_a_move_it_waits_as_one() -> None:
    scheduler = make_scheduler()
    first = grown(scheduler, (1, 5), (1, 6), (2, 7))
    scheduler.move(make_scheduler()._pager)
    assert [one.request_id for one in scheduler.waiting] == [first.request_id]
    assert not scheduler.running
    step(scheduler)
    assert scheduler._pager.length(first.request_id) == 5
    assert len(scheduler.running) == 1
    scheduler.plan()
    assert len(scheduler.running) == 3


def test_rows_of_what_gave_way_are_for_nobody() -> None:
    scheduler = make_scheduler()
    first = grown(scheduler, (1,), (2,))
    plan = scheduler.plan()
    assert first.group is not None
    first.group.restart()
    assert all(one.ended for chunk in plan.chunks for one in chunk.drawing)
    assert not any(one.ended for one in first.group.members)
    assert first.group.shared_len == 5


def test_a_single_member_has_nothing_to_share() -> None:
    group = lead(make(1, 5), 3).group
    assert group is not None
    group.restart()
    assert group.shared_len == 0
