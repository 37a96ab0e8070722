from __future__ import annotations

from llmd.api.messages import SamplingParams, StopParams
from llmd.scheduler.fifo import FifoScheduler, plan_step
from llmd.scheduler.sequence import Sequence


def make(request_id: int, length: int) -> Sequence:
    return Sequence(request_id, list(range(length)), length, SamplingParams(seed=0), StopParams(max_tokens=8))


def rows(
    sequences: list[Sequence], lengths: dict[int, int], chunk_len: int = 10
) -> list[tuple[int, int, int]]:
    chunks = plan_step(sequences, lambda request_id: lengths[request_id], chunk_len)
    return [(c.sequence.request_id, c.start, c.count) for c in chunks]


def test_a_step_carries_every_decode_and_one_prefill_chunk() -> None:
    sequences = [make(1, 6), make(2, 30), make(3, 25), make(4, 9)]
    assert rows(sequences, {1: 5, 2: 0, 3: 0, 4: 8}) == [(1, 5, 1), (2, 0, 10), (4, 8, 1)]


def test_a_prefill_goes_on_where_it_was() -> None:
    assert rows([make(2, 30)], {2: 20}) == [(2, 20, 10)]


def test_only_the_chunk_that_reaches_the_last_token_draws_one() -> None:
    sequence = make(2, 30)
    first, last = (plan_step([sequence], {2: at}.__getitem__, 20)[0] for at in (0, 20))
    assert (first.ends, last.ends) == (False, True)


def test_sequences_start_in_the_order_they_came_up_to_the_slots() -> None:
    scheduler = FifoScheduler(slots=2, chunk_len=10)
    for request_id in (5, 3, 9):
        scheduler.add(make(request_id, 4))
    assert [s.request_id for s in scheduler.admit(lambda _s: True)] == [5, 3]
    assert [s.request_id for s in scheduler.waiting] == [9]


def test_a_sequence_that_does_not_fit_holds_the_later_ones_back() -> None:
    scheduler = FifoScheduler(slots=4, chunk_len=10)
    for request_id in (1, 2, 3):
        scheduler.add(make(request_id, 4))
    assert [s.request_id for s in scheduler.admit(lambda s: s.request_id != 2)] == [1]
    assert [s.request_id for s in scheduler.waiting] == [2, 3]


def test_removing_tells_whether_blocks_are_owned() -> None:
    scheduler = FifoScheduler(slots=1, chunk_len=10)
    scheduler.add(make(1, 4))
    scheduler.add(make(2, 4))
    scheduler.admit(lambda _s: True)
    assert scheduler.remove(2) is None
    assert not scheduler.waiting
    removed = scheduler.remove(1)
    assert removed is not None
    assert scheduler.remove(1) is None
