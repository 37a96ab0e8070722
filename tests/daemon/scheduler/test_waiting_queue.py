from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from llmd.api.messages import SamplingParams, StopParams
from llmd.scheduler.sequence import Sequence
from llmd.scheduler.waiting_queue import WaitingQueue
from tests import histories

KINDS = ("alone", "a", "b", "scored", "pending")


def waiting(request_id: int, kind: str = "alone", priority: int = 0) -> Sequence:
    """Return a waiting sequence; those of kind "a" are siblings, and so are those of kind "b"."""
    sibling_key = kind.encode() if kind in {"a", "b"} else None
    sequence = Sequence(
        request_id, [1, 2, 3], 3, SamplingParams(seed=0), StopParams(max_tokens=4), (priority, request_id)
    )
    sequence.sibling_key = b"a" if kind == "pending" else sibling_key
    sequence.pending = int(kind == "pending")
    sequence.prompt_logprobs = 0 if kind == "scored" else None
    return sequence


def queue_of(*sequences: Sequence) -> WaitingQueue:
    queue = WaitingQueue()
    for sequence in sequences:
        queue.add(sequence)
    return queue


def test_thousands_that_wait_for_the_same_have_one_head() -> None:
    queue = queue_of(*(waiting(number, ("a", "scored")[number % 2]) for number in range(600)))
    assert [one.request_id for one in queue.heads] == [0, 1]


def test_one_whose_first_token_is_on_its_way_is_no_twin_any_more() -> None:
    leaving, left = waiting(1, "pending"), waiting(2, "a")
    queue = queue_of(leaving, left)
    leaving.append(7)
    assert queue.siblings(left) == [left]
    queue.remove(leaving)
    assert list(queue) == [left]


@histories.timeout
@settings(max_examples=histories.EXAMPLES)
@given(
    st.lists(
        st.tuples(st.sampled_from(KINDS), st.integers(-1, 1), st.booleans(), st.integers(0, 30)), max_size=30
    )
)
def test_finds_what_a_look_at_all_would_find(changes: list[tuple[str, int, bool, int]]) -> None:
    queue, present = WaitingQueue(), list[Sequence]()
    for number, (kind, priority, leaves, place) in enumerate(changes):
        if leaves and present:
            queue.remove(present.pop(place % len(present)))
        else:
            present.append(waiting(number, kind, priority))
            queue.add(present[-1])
        present.sort(key=lambda one: one.rank)
        assert (list(queue), len(queue)) == (present, len(present))
        assert all(queue.find(one.request_id) is one for one in present)
        assert queue.find(number + 1) is None
        fresh = [one for one in present if not one.pending]
        for one in fresh:
            same = [sibling for sibling in fresh if sibling.sibling_key == one.sibling_key]
            assert queue.siblings(one) == (same if one.sibling_key else [])
        for passed in ((), (b"a",), (b"a", b"b"), (None,)):
            assert first(queue.heads, passed) is first(present, passed)


def first(sequences: Iterable[Sequence], passed: tuple[bytes | None, ...]) -> Sequence | None:
    """Return the first sequence that may start if these sibling keys may not."""
    return next((one for one in sequences if one.sibling_key not in passed), None)
