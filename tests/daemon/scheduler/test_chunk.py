from __future__ import annotations

import pytest

from llmd.api.messages import SamplingParams, StopParams
from llmd.scheduler.chunk import Chunk
from llmd.scheduler.sequence import Sequence


@pytest.mark.parametrize(
    ("start", "count", "ends"), [(0, 5, True), (4, 1, True), (0, 4, False), (3, 1, False)]
)
def test_a_token_is_drawn_after_the_last_one_alone(start: int, count: int, *, ends: bool) -> None:
    sequence = Sequence(1, [7] * 5, 5, SamplingParams(seed=0), StopParams(max_tokens=1))
    assert Chunk(sequence, start, count).ends is ends
