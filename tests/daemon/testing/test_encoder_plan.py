from __future__ import annotations

from llmd.testing.encoder_plan import TinyEncoder


def test_the_small_encoder_keeps_nothing_and_uses_every_op_of_encoders() -> None:
    plan = TinyEncoder().plan()
    kinds = {op.kind for part in plan.parts for op in part.ops}
    assert kinds >= {"embed_position", "embed_token_type", "encoder_attention", "activate"}
    assert plan.groups == ()
    assert not plan.has_head


def test_labels_add_a_part_that_scores() -> None:
    parts = [part.kind for part in TinyEncoder(labels=2).plan().parts]
    assert parts == ["embed", "mixer", "ffn", "mixer", "ffn", "score"]
