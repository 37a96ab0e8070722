from __future__ import annotations

from llmd.engine.limits import EmbeddingLimits, EngineLimits
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


def test_rows_for_proposals_are_not_left_to_scored_prompts() -> None:
    limits = EngineLimits(100, 512, slots=4, max_outputs=20, chunk_len=32, depth=2, max_drafts=3)
    assert limits.scored_rows == 20 - 4 * 4
    assert limits.max_planned == 2 * 32
    assert limits.max_rows == 32 + 4 * 4
    assert EngineLimits(100, 512, slots=1, max_outputs=80, chunk_len=32, max_drafts=63).max_planned == 64
