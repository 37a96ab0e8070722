from __future__ import annotations

import msgspec
import numpy as np

from llmd.api.messages import StopParams
from llmd.api.samplers import SamplingParams
from llmd.api.step import Ticket
from llmd.engine.steps.batch import build_selection, build_step, drawing, fed, unknown_rows
from llmd.sampling.sampler import Sampler
from llmd.scheduler.chunk import Chunk
from llmd.scheduler.sequence import Sequence


def sequence(request_id: int, length: int, temperature: float = 1.0, logprobs: int | None = None) -> Sequence:
    tokens = list(range(100 * request_id, 100 * request_id + length))
    sampling = SamplingParams(seed=0, temperature=temperature, logprobs=logprobs)
    return Sequence(request_id, tokens, length, sampling, StopParams(4))


CHUNKS = [
    Chunk(sequence(1, 5, temperature=0.0), 4, 1, ends=True),
    Chunk(sequence(2, 40), 16, 8, ends=False),
    Chunk(sequence(3, 3, temperature=0.5, logprobs=4), 0, 3, ends=True),
]


def sampler_of(chunks: list[Chunk], **changes: SamplingParams) -> Sampler:
    """Return a sampler with all requests; request n has the parameters ``rn`` if given."""
    sampler = Sampler(400)
    for sequence in drawing(chunks):
        params = changes.get(f"r{sequence.request_id}", sequence.sampling)
        sampler.add(sequence.request_id, params, sequence.tokens)
    return sampler


TABLES = (np.zeros((3, 4), np.int32),)


def test_chunks_lie_one_after_the_other() -> None:
    step = build_step(CHUNKS, TABLES)
    assert step.token_ids.tolist() == [104, *range(216, 224), 300, 301, 302]
    assert step.positions.tolist() == [4, *range(16, 24), 0, 1, 2]
    assert step.row_offsets.tolist() == [0, 1, 9, 12]
    assert {step.token_ids.dtype, step.positions.dtype, step.row_offsets.dtype} == {np.dtype(np.int32)}


def test_sequences_have_the_numbers_of_their_adapters() -> None:
    assert build_step(CHUNKS, TABLES, adapters=("a", "b")).adapters is None
    named = [
        msgspec.structs.replace(chunk, sequence=msgspec.structs.replace(chunk.sequence, adapter=name))
        for chunk, name in zip(CHUNKS, ("b", "", "a"), strict=True)
    ]
    adapters = build_step(named, TABLES, adapters=("a", "b")).adapters
    assert adapters is not None
    assert adapters.tolist() == [1, -1, 0]
    assert adapters.dtype == np.dtype(np.int32)


def test_the_last_row_of_each_ending_chunk_is_selected() -> None:
    selection = build_selection(build_step(CHUNKS, TABLES), CHUNKS, sampler_of(CHUNKS))
    assert selection.rows.tolist() == [0, 11]
    assert [one.request_id for one in drawing(CHUNKS)] == [1, 3]
    assert selection.temperatures.tolist() == [1.0, 0.5]
    assert selection.raw_top == 4


def test_edits_belong_to_the_rows_of_their_requests() -> None:
    params = SamplingParams(seed=0, logit_bias=((2, 1.5), (7, -1.0)))
    sampler = sampler_of(CHUNKS, r3=params)
    selection = build_selection(build_step(CHUNKS, TABLES), CHUNKS, sampler)
    assert selection.edit_offsets.tolist() == [0, 0, 2]
    assert selection.edit_ids.tolist() == [2, 7]
    assert selection.edit_biases.tolist() == [1.5, -1.0]
    assert selection.edit_factors.tolist() == [1.0, 1.0]


def test_a_step_of_prefill_alone_selects_nothing() -> None:
    selection = build_selection(build_step(CHUNKS[1:2], TABLES), CHUNKS[1:2], sampler_of(CHUNKS))
    assert (selection.num_rows, selection.raw_top) == (0, 0)


def test_a_request_too_cold_to_draw_passes_a_temperature_that_float32_holds() -> None:
    chunks = [Chunk(sequence(1, 5, temperature=1e-50), 4, 1, ends=True)]
    selection = build_selection(build_step(chunks, (np.zeros((1, 4), np.int32),)), chunks, sampler_of(chunks))
    assert selection.temperatures.tolist() == [1.0]


def test_twins_select_the_same_row_each_in_its_own_way() -> None:
    siblings = (sequence(4, 3, temperature=2.0), sequence(5, 3))
    chunks = [CHUNKS[0], Chunk(sequence(3, 3, temperature=0.5), 0, 3, ends=True, siblings=siblings)]
    selection = build_selection(build_step(chunks, (np.zeros((2, 4), np.int32),)), chunks, sampler_of(chunks))
    assert selection.rows.tolist() == [0, 3, 3, 3]
    assert selection.temperatures.tolist() == [1.0, 0.5, 2.0, 1.0]


def test_the_place_of_a_token_that_is_not_drawn_yet_is_kept_and_fed() -> None:
    waiting = sequence(6, 5)
    chunks = [CHUNKS[0], Chunk(waiting, 5, 1, ends=True)]
    step = build_step(chunks, (np.zeros((2, 4), np.int32),))
    assert step.positions.tolist() == [4, 5]
    assert unknown_rows(step, chunks) == [(1, waiting)]
    follower = fed(step, np.array([1], np.int32), np.array([3], np.int32), Ticket(9))
    assert (follower.token_ids.tolist(), follower.feed) == ([104, -4], 9)


def test_scored_rows_follow_those_that_draw_with_their_targets() -> None:
    scored = sequence(7, 6)
    scored.prompt_logprobs = 3
    chunks = [CHUNKS[0], Chunk(scored, 2, 3, ends=False, scored=True)]
    step = build_step(chunks, (np.zeros((2, 4), np.int32),))
    selection = build_selection(step, chunks, sampler_of(CHUNKS))
    assert selection.rows.tolist() == [0, 1, 2, 3]
    assert selection.targets.tolist() == [-1, 703, 704, 705]
    assert selection.edit_offsets.tolist() == [0] * 5
    assert selection.temperatures.tolist() == [1.0] * 4
    assert not selection.masked.any()
    assert selection.raw_top == 3
    dtypes = (selection.rows, selection.edit_offsets, selection.targets, selection.temperatures)
    assert [array.dtype for array in dtypes] == [np.int32, np.int32, np.int32, np.float32]
