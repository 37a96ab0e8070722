"""Why sequences wait, told by the last plan."""

from __future__ import annotations

import pytest

from llmd.api.reports import WaitReason
from llmd.scheduler.scheduler import Scheduler
from llmd.scheduler.wait_reasons import wait_reasons
from tests.daemon.scheduler.groups import lead
from tests.daemon.scheduler.test_scheduler import CHUNK, make, make_scheduler, step


def reasons(scheduler: Scheduler, slots: int = 4) -> dict[int, WaitReason | None]:
    found = wait_reasons(
        scheduler.waiting,
        scheduler.running,
        scheduler.blocked_by,
        free_slots=slots - scheduler.slots_used(),
    )
    return {sequence.request_id: reason for sequence, reason in found}


def test_all_wait_for_slots_while_none_is_free() -> None:
    scheduler = make_scheduler(slots=2)
    for number in range(4):
        scheduler.add(make(number, 2, max_tokens=50))
    step(scheduler)
    assert reasons(scheduler, slots=2) == {2: "slots", 3: "slots"}


def test_the_first_waits_for_blocks_and_those_behind_it_for_the_first() -> None:
    scheduler = make_scheduler(blocks=3)
    for number, length in enumerate((20, 20, 2)):
        scheduler.add(make(number, length, max_tokens=20))
    for _ in range(3):  # two have the rows of the first prompt
        step(scheduler)
    assert reasons(scheduler) == {1: "kv_blocks", 2: "earlier"}


def test_a_preempted_sequence_waits_for_blocks() -> None:
    scheduler = make_scheduler(blocks=4)
    for number in range(2):
        scheduler.add(make(number, 10, max_tokens=80))
    while not scheduler.preemptions:
        step(scheduler)
    assert reasons(scheduler) == {1: "kv_blocks"}


def test_prompts_wait_while_an_earlier_one_takes_all_rows_of_the_steps() -> None:
    scheduler = make_scheduler()
    for number in range(3):
        scheduler.add(make(number, 5 * CHUNK))
    step(scheduler)
    assert reasons(scheduler) == {1: "earlier", 2: "earlier"}


def test_siblings_wait_for_the_prefill_that_they_share() -> None:
    scheduler = make_scheduler()
    for number in range(2):
        scheduler.add(make(number, 5 * CHUNK, prompt=0))
    step(scheduler)
    assert reasons(scheduler) == {1: "earlier"}


def test_scored_prompts_wait_for_each_other() -> None:
    scheduler = make_scheduler()
    for number in range(2):
        sequence = make(number, 3 * CHUNK)
        sequence.prompt_logprobs, sequence.cache_keys, sequence.sibling_key = 0, None, None
        scheduler.add(sequence)
    step(scheduler)
    assert reasons(scheduler) == {1: "earlier"}


def test_a_search_waits_for_all_its_slots_and_those_behind_it_for_the_search() -> None:
    scheduler = make_scheduler(slots=3)
    scheduler.add(make(0, 2, max_tokens=50))
    scheduler.add(lead(make(1, 2, max_tokens=50), 3))
    scheduler.add(make(2, 2))
    step(scheduler)
    assert reasons(scheduler, slots=3) == {1: "slots", 2: "earlier"}


@pytest.mark.parametrize("running", [(), (0,)])
def test_what_has_just_arrived_has_no_reason(running: tuple[int, ...]) -> None:
    scheduler = make_scheduler()
    for number in running:
        scheduler.add(make(number, 2))
    step(scheduler)
    scheduler.add(make(7, 2))
    assert reasons(scheduler) == {7: None}
