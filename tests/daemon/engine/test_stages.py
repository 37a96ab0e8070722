from __future__ import annotations

import pytest

from llmd.api.errors import ConfigError
from llmd.api.messages import StageSpec
from llmd.engine.stages import check_stages, part_range
from llmd.testing.plans import TinyModel


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ([(0, 2), (3, 4)], "layers 3-3 on b do not follow layer 1"),
        ([(0, 3), (2, 4)], "layers 2-3 on b do not follow layer 2"),
        ([(1, 4)], "do not follow layer -1"),
        ([(0, 2), (2, 2)], "do not follow"),
        ([(0, 2)], "ends with layer 1, the model has layers 0-3"),
        ([(0, 5)], "ends with layer 4, the model has layers 0-3"),
    ],
)
def test_a_split_must_cover_every_layer_once(ranges: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_stages([StageSpec("ab"[i % 2], *r) for i, r in enumerate(ranges)], 4)


def test_the_first_stage_embeds_and_the_last_has_the_head() -> None:
    plan = TinyModel(layers=4).plan()
    ranges = [part_range(plan, StageSpec("a", *r)) for r in ((0, 2), (2, 3), (3, 4))]
    assert ranges == [(0, 5), (5, 7), (7, 10)]
