"""The tests pass times explicitly: none of them waits."""

from __future__ import annotations

import pytest

from llmd.server.engines.admission_limits import MAX_SAMPLES, AdmissionLimits, QueueLimits
from llmd.server.errors import BusyError, RateLimitError
from llmd.server.request_record import QueueEntry

SLOTS = 2


def room(**limits: int) -> AdmissionLimits:
    return AdmissionLimits("tiny", SLOTS, QueueLimits(**{"sequences": 3, **limits}), 0.0)


def fill(waiting: AdmissionLimits, count: int, *, key: str = "", now: float = 0.0) -> list[QueueEntry]:
    return [waiting.admit(key, 1, 10, now) for _ in range(count)]


def refusal(waiting: AdmissionLimits, *, key: str = "", sequences: int = 1, now: float = 0.0) -> BusyError:
    with pytest.raises(BusyError) as caught:
        waiting.admit(key, sequences, 10, now)
    return caught.value


def test_so_many_wait_beside_those_that_run_and_one_more_when_one_has_left() -> None:
    waiting = room()
    entries = fill(waiting, SLOTS + 3)
    assert waiting.waiting == 3
    assert refusal(waiting).code == "queue_full"
    waiting.release(entries[0], 1.0)
    fill(waiting, 1)
    refusal(waiting)


def test_without_a_queue_only_what_can_run_is_taken() -> None:
    waiting = room(sequences=0)
    fill(waiting, SLOTS)
    assert refusal(waiting).code == "queue_full"


def test_request_larger_than_the_queue_is_taken_where_it_need_not_wait() -> None:
    waiting = room()
    entry = waiting.admit("", 16, 160, 0.0)
    refusal(waiting)
    waiting.release(entry, 1.0)
    fill(waiting, SLOTS)
    refusal(waiting, sequences=16)


def test_each_key_has_its_own_share() -> None:
    waiting = room(per_key=2)
    fill(waiting, 2, key="ann")
    refused = refusal(waiting, key="ann")
    assert isinstance(refused, RateLimitError)
    assert (refused.code, "ann" in refused.message) == ("key_limit", True)
    fill(waiting, 2, key="bob")
    fill(waiting, 1)


def test_requests_without_a_key_share_no_key() -> None:
    fill(room(per_key=1), SLOTS + 3)


def test_prompt_tokens_are_bounded_but_for_a_request_that_is_alone() -> None:
    waiting = room(tokens=25)
    entry = waiting.admit("", 1, 1000, 0.0)
    assert "1000 prompt tokens" in refusal(waiting).message
    waiting.release(entry, 1.0)
    fill(waiting, 2)
    refusal(waiting)


def test_retry_comes_at_the_rate_at_which_places_became_free() -> None:
    waiting = room()
    entries = fill(waiting, SLOTS + 3)
    for entry in entries:
        waiting.release(entry, 10.0)
    fill(waiting, SLOTS + 3, now=10.0)
    assert waiting.rate(10.0) == 0.5  # five in ten seconds
    assert refusal(waiting, sequences=3, now=10.0).retry_after_s == 6


def test_those_who_are_refused_come_back_one_after_the_other() -> None:
    waiting = room()
    for entry in fill(waiting, SLOTS + 3):
        waiting.release(entry, 10.0)
    fill(waiting, SLOTS + 3, now=10.0)
    assert [refusal(waiting, now=10.0).retry_after_s for _ in range(4)] == [2, 4, 6, 8]
    assert refusal(waiting, now=100.0).retry_after_s <= 60


def test_retry_is_between_one_second_and_a_minute() -> None:
    waiting = room()
    fill(waiting, SLOTS + 3)
    assert refusal(waiting, now=1000.0).retry_after_s == 60
    burst = room()
    fill(burst, SLOTS + 3, now=1000.0)
    assert refusal(burst, now=1000.0).retry_after_s == 1
    assert refusal(burst, now=1004.0).retry_after_s == 4
    quick = room()
    for _ in range(100):
        quick.release(quick.admit("", 1, 1, 0.5), 0.5)
    fill(quick, SLOTS + 3)
    assert refusal(quick, now=0.5).retry_after_s == 1


def test_rate_forgets_what_is_older_than_a_minute() -> None:
    waiting = room()
    fill(waiting, 1)  # never idle
    for entry in fill(waiting, 4):
        waiting.release(entry, 10.0)
    waiting.release(waiting.admit("", 1, 1, 90.0), 90.0)
    assert waiting.rate(100.0) == 1 / 60


def test_rate_of_many_is_that_of_the_last_ones() -> None:
    waiting = room(sequences=MAX_SAMPLES)
    for entry in fill(waiting, MAX_SAMPLES):
        waiting.release(entry, 20.0)
    assert waiting.rate(22.0) == MAX_SAMPLES / 2


def test_places_that_were_not_served_do_not_count_as_freed() -> None:
    waiting = room()
    waiting.release(waiting.admit("", 1, 1, 0.0), 1.0, served=False)
    assert waiting.rate(10.0) == 0.1
    assert waiting.waiting == 0
