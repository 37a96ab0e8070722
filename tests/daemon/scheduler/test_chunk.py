from __future__ import annotations

from llmd.api.messages import StopParams
from llmd.api.samplers import SamplingParams
from llmd.scheduler.chunk import Chunk
from llmd.scheduler.sequence import Sequence


def make(request_id: int) -> Sequence:
    return Sequence(request_id, [7] * 5, 5, SamplingParams(seed=0), StopParams(max_tokens=1))


def test_the_sequence_and_its_twins_draw_where_the_chunk_ends() -> None:
    first, second = make(1), make(2)
    assert Chunk(first, 0, 5, ends=True, siblings=(second,)).drawing == (first, second)
    assert Chunk(first, 0, 4, ends=False).drawing == ()
