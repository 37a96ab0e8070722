"""Which sequences run, wait and are preempted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmd.api import BLOCK_LEN, KVGroup
from llmd.api.messages import StopParams
from llmd.api.samplers import SamplingParams
from llmd.pager.block_keys import BlockKeys, prompt_key
from llmd.pager.pager import Pager
from llmd.scheduler.chunk import StepPlan
from llmd.scheduler.scheduler import Scheduler
from llmd.scheduler.sequence import Sequence
from tests import histories
from tests.daemon.scheduler.groups import Searches, lead

GROUPS = (KVGroup(0, None, 1, 8, (0,)), KVGroup(1, 24, 1, 8, (1,)))
CHUNK = 10
SCORED_ROWS = 4
Rows = list[tuple[int, int, int]]


def make(
    request_id: int, length: int, *, priority: int = 0, max_tokens: int = 8, prompt: int | None = None
) -> Sequence:
    """Return a sequence; sequences with the same ``prompt`` number and length are siblings."""
    prompt = request_id if prompt is None else prompt
    tokens = [1000 * prompt + place for place in range(length)]
    stop = StopParams(max_tokens=max_tokens)
    rank = (priority, request_id)
    sibling_key = prompt_key(tokens)
    return Sequence(request_id, tokens, length, SamplingParams(seed=0), stop, rank, BlockKeys(), sibling_key)


def make_scheduler(blocks: int = 100, slots: int = 4, depth: int = 2, micro_batches: int = 1) -> Scheduler:
    pager = Pager(GROUPS, (blocks, blocks), max_sequences=slots, max_len=400, chunk_len=depth * CHUNK)
    return Scheduler(
        pager, slots=slots, chunk_len=CHUNK, scored_rows=SCORED_ROWS, micro_batches=micro_batches
    )


def rows(plan: StepPlan) -> Rows:
    return [(chunk.sequence.request_id, chunk.start, chunk.count) for chunk in plan.chunks]


def done(scheduler: Scheduler, plan: StepPlan, searches: Searches | None = None) -> None:
    """Act as if the step had run: each sequence that draws gets its own number as a token.

    Those of groups get theirs from ``searches``.
    """
    pager = scheduler._pager
    pager.copied(pager.copies())
    for chunk in plan.chunks:
        scheduler.complete(chunk)
        for sequence in chunk.drawing:
            if sequence.group is not None:
                if searches and not sequence.ended:
                    searches.draw(sequence)
            elif not sequence.ended and sequence.append(sequence.request_id) is not None:
                scheduler.remove(sequence.request_id)
    if searches:
        searches.advance()


def drawing_in(plan: StepPlan) -> list[int]:
    """Return the ids of the sequences that draw in a step."""
    return [one.request_id for chunk in plan.chunks for one in chunk.drawing]


def step(scheduler: Scheduler) -> Rows:
    plan = scheduler.plan()
    done(scheduler, plan)
    return rows(plan)


def test_a_step_carries_every_decode_and_prefill_up_to_a_chunk() -> None:
    scheduler = make_scheduler()
    for request_id, length in ((1, 4), (2, 3), (3, 25), (4, 9)):
        scheduler.add(make(request_id, length))
    assert step(scheduler) == [(1, 0, 4), (2, 0, 3), (3, 0, 3)]
    assert step(scheduler) == [(1, 4, 1), (2, 3, 1), (3, 3, 10)]
    assert step(scheduler) == [(1, 5, 1), (2, 4, 1), (3, 13, 10)]
    assert step(scheduler) == [(1, 6, 1), (2, 5, 1), (3, 23, 2), (4, 0, 8)]


def test_a_chunk_ends_where_it_leaves_a_snapshot() -> None:
    state = KVGroup(2, None, 0, 0, (2,), kind="state", state_bytes=8)
    groups, counts = (*GROUPS, state), (100, 100, 20)
    pager = Pager(groups, counts, max_sequences=4, max_len=400, chunk_len=2 * CHUNK, snapshot_len=BLOCK_LEN)
    scheduler = Scheduler(pager, slots=4, chunk_len=CHUNK)
    for request_id, length in ((1, 22), (2, 5)):
        scheduler.add(make(request_id, length))
    assert [step(scheduler) for _ in range(3)] == [
        [(1, 0, 10)],
        [(1, 10, 6), (2, 0, 4)],
        [(1, 16, 6), (2, 4, 1)],
    ]


def score(sequence: Sequence) -> Sequence:
    """Mark the prompt of the sequence as scored."""
    sequence.cache_keys = sequence.sibling_key = None
    sequence.prompt_logprobs = 0
    return sequence


def test_scored_rows_are_few_come_last_and_never_draw() -> None:
    scheduler = make_scheduler()
    for sequence in (score(make(1, 7)), score(make(2, 3)), make(3, 2), score(make(4, 1))):
        scheduler.add(sequence)
    # The second must wait for scored rows; those behind it need none.
    assert step(scheduler) == [(3, 0, 2), (4, 0, 1), (1, 0, 4)]
    assert step(scheduler) == [(3, 2, 1), (4, 1, 1), (1, 4, 2), (2, 0, 2)]
    plan = scheduler.plan()
    assert rows(plan) == [(1, 6, 1), (2, 2, 1), (3, 3, 1), (4, 2, 1)]
    assert not any(chunk.scored for chunk in plan.chunks)
    done(scheduler, plan)


def test_a_prompt_that_is_only_scored_draws_once() -> None:
    scheduler = make_scheduler()
    scheduler.add(score(make(1, 3, max_tokens=0)))
    assert step(scheduler) == [(1, 0, 2)]
    first = scheduler.plan()
    assert rows(first) == [(1, 2, 1)]
    assert rows(scheduler.plan()) == []
    done(scheduler, first)
    assert not scheduler.running


def test_only_the_chunk_that_reaches_the_last_token_draws_one() -> None:
    scheduler = make_scheduler()
    scheduler.add(make(1, 15))
    plans = [scheduler.plan()]
    done(scheduler, plans[0])
    plans.append(scheduler.plan())
    assert [plan.chunks[0].ends for plan in plans] == [False, True]


def test_sequences_start_in_the_order_they_came_up_to_the_slots() -> None:
    scheduler = make_scheduler(slots=2)
    for request_id in (5, 6, 9):
        scheduler.add(make(request_id, 4))
    step(scheduler)
    assert [s.request_id for s in scheduler.running] == [5, 6]
    assert [s.request_id for s in scheduler.waiting] == [9]


def test_a_lower_priority_number_goes_first() -> None:
    scheduler = make_scheduler(slots=1)
    for request_id, priority in ((1, 0), (2, 5), (3, -1)):
        scheduler.add(make(request_id, 4, priority=priority))
    assert step(scheduler) == [(3, 0, 4)]
    assert [s.request_id for s in scheduler.waiting] == [1, 2]


def test_a_sequence_that_does_not_fit_holds_the_later_ones_back() -> None:
    scheduler = make_scheduler(blocks=4)
    for request_id, length in ((1, 6), (2, 60), (3, 6)):
        scheduler.add(make(request_id, length))
    assert step(scheduler) == [(1, 0, 6)]
    assert [s.request_id for s in scheduler.waiting] == [2, 3]


def test_when_blocks_run_out_the_last_one_waits_with_its_tokens() -> None:
    scheduler = make_scheduler(blocks=3, slots=2)
    for request_id in (1, 2):
        scheduler.add(make(request_id, 5, max_tokens=30))
    while not scheduler.preemptions:
        step(scheduler)
    assert [s.request_id for s in scheduler.running] == [1]
    (waiting,) = scheduler.waiting
    assert waiting.request_id == 2
    assert len(waiting.tokens) > waiting.prompt_len


def test_what_is_cached_is_not_computed_again() -> None:
    scheduler = make_scheduler()
    scheduler.add(make(1, 40, max_tokens=1))
    while scheduler.running or scheduler.waiting:
        step(scheduler)
    assert not scheduler.num_waiting
    again = make(1, 40)
    scheduler.add(again)
    plan = scheduler.plan()
    assert (rows(plan), plan.started) == ([(1, 32, 8)], [(again, 32)])


@pytest.mark.parametrize("request_id", [1, 2, 3])
def test_a_removed_sequence_leaves_nothing(request_id: int) -> None:
    scheduler = make_scheduler(slots=1)
    scheduler.add(make(1, 4))
    step(scheduler)
    scheduler.add(make(2, 4))
    scheduler.remove(request_id)
    left = {s.request_id for s in (*scheduler.running, *scheduler.waiting)}
    assert left == {1, 2} - {request_id}
    scheduler._pager.check_integrity()


def test_a_step_is_planned_while_the_one_before_draws() -> None:
    scheduler = make_scheduler()
    scheduler.add(make(1, 4, max_tokens=3))
    first = scheduler.plan()
    second = scheduler.plan({1})
    assert rows(second) == [(1, 4, 1)]
    done(scheduler, first)
    third = scheduler.plan({1})
    assert rows(third) == [(1, 5, 1)]
    done(scheduler, second)
    assert rows(scheduler.plan()) == [], "its last token is pending"
    done(scheduler, third)
    assert not scheduler.running


def test_a_pending_token_that_a_step_cannot_take_is_waited_for() -> None:
    scheduler = make_scheduler()
    scheduler.add(make(1, 4))
    first = scheduler.plan()
    assert rows(scheduler.plan(known=())) == []
    done(scheduler, first)
    assert rows(scheduler.plan()) == [(1, 4, 1)]


def test_micro_batches_divide_the_sequences_evenly() -> None:
    scheduler = make_scheduler(slots=5, depth=2, micro_batches=2)
    for request_id in range(5):
        scheduler.add(make(request_id, 1))
    done(scheduler, scheduler.plan())
    first, second = scheduler.plan(), scheduler.plan()
    assert [row[0] for row in rows(first)] == [0, 1, 2]
    assert [row[0] for row in rows(second)] == [3, 4]
    assert rows(scheduler.plan()) == []
    done(scheduler, first)
    assert [row[0] for row in rows(scheduler.plan())] == [0, 1, 2]


def test_a_chunk_of_a_sequence_that_was_preempted_and_begun_again_is_not_valid() -> None:
    """Its step is still in flight when the sequence runs again."""
    scheduler = make_scheduler(blocks=8, slots=2, depth=3)
    scheduler.add(make(1, 16))
    done(scheduler, scheduler.plan())
    done(scheduler, scheduler.plan())
    scheduler.add(make(2, 5, max_tokens=20))
    in_flight = scheduler.plan()
    assert (2, 0, 5) in rows(in_flight)
    scheduler._make_room(scheduler.running[0], iter([False, True]).__next__)
    again = scheduler.plan()
    assert (2, 0, 5) in rows(again)
    scheduler.complete(in_flight.chunks[-1])
    assert scheduler._pager.length(2) == 0
    scheduler.complete(again.chunks[-1])
    assert scheduler._pager.length(2) == 5


def test_twins_draw_from_the_last_row_of_the_first() -> None:
    scheduler = make_scheduler()
    siblings = [make(n, 15, prompt=1) for n in (1, 2, 3)]
    for sibling in siblings:
        scheduler.add(sibling)
    first, second = scheduler.plan(), scheduler.plan()
    assert [rows(first), rows(second)] == [[(1, 0, 10)], [(1, 10, 5)]]
    assert second.chunks[0].drawing == tuple(siblings)
    assert second.started == [(siblings[1], 15), (siblings[2], 15)]
    done(scheduler, first)
    done(scheduler, second)
    assert rows(scheduler.plan()) == [(1, 15, 1), (2, 15, 1), (3, 15, 1)]


def test_there_are_no_more_twins_than_slots() -> None:
    scheduler = make_scheduler(slots=2)
    for request_id in (1, 2, 3):
        scheduler.add(make(request_id, 5, prompt=1))
    plan = scheduler.plan()
    assert [sequence.request_id for sequence in plan.chunks[0].drawing] == [1, 2]
    done(scheduler, plan)
    assert [sequence.request_id for sequence in scheduler.waiting] == [3]


def test_a_twin_goes_on_alone_when_the_first_has_gone() -> None:
    scheduler = make_scheduler()
    for request_id in (1, 2):
        scheduler.add(make(request_id, 5, prompt=1))
    plan = scheduler.plan()
    scheduler.remove(1)
    done(scheduler, plan)
    assert rows(scheduler.plan()) == [(2, 0, 6)]


def test_a_failed_step_lets_twins_wait_again() -> None:
    scheduler = make_scheduler()
    for request_id in (1, 2):
        scheduler.add(make(request_id, 5, prompt=1))
    scheduler.plan()
    scheduler.rewind()
    again = scheduler.plan()
    assert rows(again) == [(1, 0, 5)]
    assert len(again.chunks[0].drawing) == 2


def test_after_a_move_all_sequences_wait_in_their_order_and_begin_again() -> None:
    scheduler = make_scheduler(slots=2)
    for request_id in (1, 2, 3):
        scheduler.add(make(request_id, 4))
    for _ in range(2):
        step(scheduler)
    pager = make_scheduler(slots=2)._pager
    scheduler.move(pager)
    assert [one.request_id for one in scheduler.waiting] == [1, 2, 3]
    assert scheduler.preemptions == 0
    assert step(scheduler) == [(1, 0, 6), (2, 0, 4)]
    assert step(scheduler) == [(1, 6, 1), (2, 4, 2)]
    assert pager.owns(1)


def become(kind: str, sequence: Sequence, pager: Pager, width: int) -> None:
    """Make a sequence what its kind says; a group that would need too many blocks stays a single sequence."""
    if kind == "scored":
        score(sequence)
    elif kind == "group" and not pager.shortage(sequence.total_len, width, sequence.prompt_len):
        lead(sequence, width)


@histories.timeout
@settings(max_examples=histories.EXAMPLES)
@given(
    requests=st.lists(
        st.tuples(
            st.integers(1, 60),
            st.integers(1, 30),
            st.integers(-1, 1),
            st.integers(0, 60),
            st.sampled_from(["alone", "sibling", "scored", "group"]),
        ),
        min_size=1,
        max_size=12,
    ),
    blocks=st.integers(6, 20),
    slots=st.integers(1, 6),
    cancelled=st.sets(st.integers(0, 11)),
    failures=st.sets(st.integers(0, 60), max_size=4),
    depth=st.integers(1, 4),
    divided=st.booleans(),
)
def test_every_request_ends_whatever_the_pool(
    *,
    requests: list[tuple[int, int, int, int, str]],
    blocks: int,
    slots: int,
    cancelled: set[int],
    failures: set[int],
    depth: int,
    divided: bool,
) -> None:
    """Keep ``depth`` steps in flight, which may divide the sequences; a failure loses the planned ones."""
    scheduler = make_scheduler(blocks, slots, depth, depth if divided else 1)
    arrivals = {at: [index for index, request in enumerate(requests) if request[3] == at] for at in range(61)}
    sequences = [
        make(
            index, length, priority=priority, max_tokens=max_tokens, prompt=0 if kind == "sibling" else index
        )
        for index, (length, max_tokens, priority, _, kind) in enumerate(requests)
    ]
    for sequence, (*_, kind) in zip(sequences, requests, strict=True):
        become(kind, sequence, scheduler._pager, min(3, slots))
    searches = Searches(scheduler)
    plans: list[StepPlan] = []
    for now in range(10_000):
        for index in arrivals.get(now, []):
            scheduler.add(sequences[index])
        for index in cancelled if now == 30 else ():
            searches.cancel(index)
            scheduler.remove(index)
        plan = scheduler.plan(drawing_in(plans[-1]) if plans else ())
        if divided:
            in_flight = [one for plan in (*plans, plan) for one in drawing_in(plan)]
            assert len(in_flight) == len(set(in_flight)), "two steps draw for a sequence"
        plans.append(plan)
        assert sum(chunk.count for chunk in plan.chunks if chunk.count > 1) <= CHUNK + len(plan.chunks)
        assert sum(len(chunk.drawing) for chunk in plan.chunks) <= slots
        assert sum(chunk.count for chunk in plan.chunks if chunk.scored) <= SCORED_ROWS
        assert len(scheduler.running) <= slots
        some_plan = any(plan.chunks for plan in plans)
        assert some_plan or not (scheduler.running or scheduler.num_waiting), "no progress"
        if now in failures:
            scheduler.rewind()
            plans.clear()
        elif len(plans) == depth:
            done(scheduler, plans.pop(0), searches)
        scheduler._pager.check_integrity()
        if now > 60 and not (plans or scheduler.running or scheduler.num_waiting):
            break
    for index, sequence in enumerate(sequences):
        length = searches.ended.get(index, 0) if sequence.group else len(sequence.tokens)
        ended = length == sequence.prompt_len + sequence.stop.max_tokens
        assert ended or index in cancelled
    assert [pool.num_free for pool in scheduler._pager.pools] == [blocks, blocks]
