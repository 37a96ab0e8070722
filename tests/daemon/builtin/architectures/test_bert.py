from __future__ import annotations

from llmd.api import EmbedPosition
from llmd.builtin.architectures.bert import plan
from tests.golden.models.encoders import bert


def test_positions_begin_with_the_first_row_of_their_table() -> None:
    made = plan(bert(), None)
    (position,) = (op for op in made.parts[0].ops if isinstance(op, EmbedPosition))
    assert position.table.rows == (0, 128)
    assert made.max_context_len == 128


def test_a_head_that_guesses_masked_tokens_is_left_out() -> None:
    assert plan(bert("BertForMaskedLM"), None).parts == plan(bert(), None).parts
