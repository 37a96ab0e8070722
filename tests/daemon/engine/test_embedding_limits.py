from __future__ import annotations

from llmd.engine.embedding_limits import EmbeddingLimits
from llmd.models.headless import without_head
from llmd.testing.encoder_plan import TinyEncoder
from llmd.testing.plans import TinyModel


def test_limits_follow_the_plan() -> None:
    plan = without_head(TinyModel().plan())
    assert EmbeddingLimits.of(plan, 32).max_rows == 32
    bare = type(plan)("e", 8, 9, 100, 100, (), plan.parts)
    limits = EmbeddingLimits.of(bare, 32)
    assert (limits.whole_texts, limits.max_rows) == (True, 100)
    assert limits.num_token_types == 1
    assert EmbeddingLimits.of(TinyEncoder().plan(), 32).num_token_types == 2
