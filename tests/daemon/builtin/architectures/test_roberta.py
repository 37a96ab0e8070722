from __future__ import annotations

import pytest

from llmd.api import CheckpointError, EmbedPosition
from llmd.builtin.architectures.roberta import plan
from tests.golden.models.encoders import roberta


@pytest.mark.parametrize(("padding", "first"), [(1, 2), (0, 1), (4, 5)])
def test_positions_begin_after_that_of_the_padding_token(padding: int, first: int) -> None:
    made = plan(roberta(pad_token_id=padding), None)
    (position,) = (op for op in made.parts[0].ops if isinstance(op, EmbedPosition))
    assert (position.table.shape, position.table.rows) == ((130, 64), (first, 130))
    assert made.max_context_len == 130 - first


def test_a_table_without_a_position_left_contradicts() -> None:
    with pytest.raises(CheckpointError, match="leaves none"):
        plan(roberta(max_position_embeddings=2), None)
