from __future__ import annotations

from llmd.api.messages import StopParams, Submit
from llmd.api.samplers import SamplingParams
from llmd.scheduler.sequence import Finish, Sequence
from llmd.scheduler.sequence_group import SequenceGroup


def make(stop: StopParams, output: tuple[int, ...] = ()) -> Sequence:
    return Sequence.of(Submit(1, (5, 6), SamplingParams(seed=0), stop, output))


def test_ends_at_max_tokens() -> None:
    sequence = make(StopParams(max_tokens=2))
    assert [sequence.append(1), sequence.append(1)] == [None, Finish.LENGTH]


def test_ends_at_any_stop_id() -> None:
    assert make(StopParams(max_tokens=9, stop_ids=(3, 4))).append(4) is Finish.STOP


def test_a_stop_id_before_min_tokens_does_not_end_it() -> None:
    sequence = make(StopParams(max_tokens=9, stop_ids=(4,), min_tokens=2))
    assert [sequence.append(4), sequence.append(4), sequence.append(4)] == [None, None, Finish.STOP]


def test_a_resubmitted_sequence_counts_the_output_that_it_has() -> None:
    sequence = make(StopParams(max_tokens=3), output=(8, 9))
    assert sequence.tokens == [5, 6, 8, 9]
    assert sequence.append(1) is Finish.LENGTH


def test_total_length_does_not_depend_on_the_output_so_far() -> None:
    assert make(StopParams(max_tokens=3), output=(8, 9)).total_len == 5


def test_a_fork_has_the_same_tokens_and_goes_its_own_way() -> None:
    sequence = make(StopParams(max_tokens=3), output=(8,))
    forked = sequence.fork(-2)
    sequence.tokens.append(1)
    forked.tokens.append(2)
    assert (forked.request_id, sequence.tokens, forked.tokens) == (-2, [5, 6, 8, 1], [5, 6, 8, 2])
    assert forked.cache_keys is not sequence.cache_keys


def test_a_member_belongs_to_the_request_of_its_cohort() -> None:
    sequence = make(StopParams(max_tokens=3))
    assert sequence.owner_id == 1
    sequence.group = SequenceGroup(9, 2, [sequence])
    assert sequence.owner_id == 9
