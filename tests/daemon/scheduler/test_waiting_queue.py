from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from llmd.api.messages import SamplingParams, StopParams
from llmd.scheduler.sequence import Sequence
from llmd.scheduler.waiting_queue import WaitingQueue
from tests import histories

KINDS = ("alone", "a", "b", "scored", "on its way")


def waiting(request_id: int, kind: str = "alone", priority: int = 0) -> Sequence:
    """Those of kind "a" are siblings, as are those of kind "b"."""
    sibling_key = kind.encode() if kind in {"a", "b"} else None
    sequence = Sequence(
        request_id, [1, 2, 3], 3, SamplingParams(seed=0), StopParams(max_tokens=4), (priority, request_id)
    )
    sequence.sibling_key = b"a" if kind == "on its way" else sibling_key
    sequence.pending = int(kind == "on its way")
    sequence.prompt_logprobs = 0 if kind == "scored" else None
    return sequence


def line_of(*sequences: Sequence) -> WaitingQueue:
    line = WaitingQueue()
    for sequence in sequences:
        line.add(sequence)
    return line


def test_thousands_that_wait_for_the_same_have_one_head() -> None:
    line = line_of(*(waiting(number, ("a", "scored")[number % 2]) for number in range(600)))
    assert [one.request_id for one in line.heads] == [0, 1]


def test_one_whose_first_token_is_on_its_way_is_no_twin_any_more() -> None:
    leaving, left = waiting(1, "on its way"), waiting(2, "a")
    line = line_of(leaving, left)
    leaving.append(7)
    assert line.siblings(left) == [left]
    line.remove(leaving)
    assert list(line) == [left]


@histories.timeout
@settings(max_examples=histories.EXAMPLES)
@given(
    st.lists(
        st.tuples(st.sampled_from(KINDS), st.integers(-1, 1), st.booleans(), st.integers(0, 30)), max_size=30
    )
)
def test_finds_what_a_look_at_all_would_find(changes: list[tuple[str, int, bool, int]]) -> None:
    line, present = WaitingQueue(), list[Sequence]()
    for number, (kind, priority, leaves, place) in enumerate(changes):
        if leaves and present:
            line.remove(present.pop(place % len(present)))
        else:
            present.append(waiting(number, kind, priority))
            line.add(present[-1])
        present.sort(key=lambda one: one.rank)
        assert (list(line), len(line)) == (present, len(present))
        assert all(line.find(one.request_id) is one for one in present)
        assert line.find(number + 1) is None
        fresh = [one for one in present if not one.pending]
        for one in fresh:
            same = [sibling for sibling in fresh if sibling.sibling_key == one.sibling_key]
            assert line.siblings(one) == (same if one.sibling_key else [])
        for passed in ((), (b"a",), (b"a", b"b"), (None,)):
            assert first(line.heads, passed) is first(present, passed)


def first(sequences: Iterable[Sequence], passed: tuple[bytes | None, ...]) -> Sequence | None:
    """The first that may start, where those with such sibling keys may not."""
    return next((one for one in sequences if one.sibling_key not in passed), None)
