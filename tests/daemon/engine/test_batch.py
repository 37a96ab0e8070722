from __future__ import annotations

import numpy as np

from llmd.api.messages import SamplingParams, StopParams
from llmd.engine.batch import build_selection, build_step
from llmd.sampling.edits import LogitEdits
from llmd.scheduler.chunk import Chunk
from llmd.scheduler.sequence import Sequence


def sequence(request_id: int, length: int, temperature: float = 1.0, logprobs: int | None = None) -> Sequence:
    tokens = list(range(100 * request_id, 100 * request_id + length))
    sampling = SamplingParams(seed=0, temperature=temperature, logprobs=logprobs)
    return Sequence(request_id, tokens, length, sampling, StopParams(4))


CHUNKS = [
    Chunk(sequence(1, 5, temperature=0.0), 4, 1),
    Chunk(sequence(2, 40), 16, 8),
    Chunk(sequence(3, 3, temperature=0.5, logprobs=4), 0, 3),
]
TABLES = (np.zeros((3, 4), np.int32),)


def test_chunks_lie_one_after_the_other() -> None:
    step = build_step(CHUNKS, TABLES)
    assert step.token_ids.tolist() == [104, *range(216, 224), 300, 301, 302]
    assert step.positions.tolist() == [4, *range(16, 24), 0, 1, 2]
    assert step.row_offsets.tolist() == [0, 1, 9, 12]
    assert {step.token_ids.dtype, step.positions.dtype, step.row_offsets.dtype} == {np.dtype(np.int32)}


def test_the_last_row_of_each_ending_chunk_is_selected() -> None:
    selection, ending = build_selection(build_step(CHUNKS, TABLES), CHUNKS)
    assert selection.rows.tolist() == [0, 11]
    assert [chunk.sequence.request_id for chunk in ending] == [1, 3]
    assert selection.temperatures.tolist() == [1.0, 0.5]
    assert selection.raw_top == 4


def test_edits_belong_to_the_rows_of_their_requests() -> None:
    params = SamplingParams(seed=0, logit_bias=((2, 1.5), (7, -1.0)))
    edits = {3: LogitEdits(params, 400, [], [])}
    selection, _ = build_selection(build_step(CHUNKS, TABLES), CHUNKS, edits)
    assert selection.edit_offsets.tolist() == [0, 0, 2]
    assert selection.edit_ids.tolist() == [2, 7]
    assert selection.edit_biases.tolist() == [1.5, -1.0]
    assert selection.edit_factors.tolist() == [1.0, 1.0]


def test_a_step_of_prefill_alone_selects_nothing() -> None:
    selection, ending = build_selection(build_step(CHUNKS[1:2], TABLES), CHUNKS[1:2])
    assert (selection.num_rows, ending, selection.raw_top) == (0, [], 0)


def test_a_request_too_cold_to_draw_passes_a_temperature_that_float32_holds() -> None:
    chunks = [Chunk(sequence(1, 5, temperature=1e-50), 4, 1)]
    selection, _ = build_selection(build_step(chunks, (np.zeros((1, 4), np.int32),)), chunks)
    assert selection.temperatures.tolist() == [1.0]
