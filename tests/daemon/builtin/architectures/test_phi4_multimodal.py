from __future__ import annotations

from llmd.builtin.architectures import phi3, phi4_multimodal
from tests.golden.models.catalog import tiny_model

MINI = tiny_model("phi4-mini-long").config


def test_text_alone_is_read_by_phi4_mini_and_no_more() -> None:
    plan = phi4_multimodal.plan(MINI, None)
    assert plan.parts == phi3.plan(MINI, None).parts
    assert [left_out.what for left_out in plan.left_out] == ["vision and speech"]
