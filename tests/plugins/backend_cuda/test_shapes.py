"""Attention ops of the same shape share the plan of a step."""

from __future__ import annotations

from llmd.builtin.architectures import deepseek_v4, deepseek_v32
from llmd.testing.encoder_plan import TinyEncoder
from llmd.testing.plans import TinyModel
from llmd_backend_cuda.attention_plan import AttentionShape
from llmd_backend_cuda.shapes import attention_shapes
from tests.cuda.simulated import lowered
from tests.golden.models.catalog import tiny_model


def test_layers_with_the_same_heads_and_window_have_one_shape() -> None:
    full, window = AttentionShape(4, 2, 12, None), AttentionShape(4, 2, 12, 20)
    assert attention_shapes(lowered(TinyModel(layers=4).plan())) == (full, window)
    assert attention_shapes(lowered(TinyModel(layers=4, window=None).plan())) == (full,)


def test_only_the_layers_of_the_stage_count() -> None:
    program = lowered(TinyModel(layers=2).plan(), 3, 5)
    assert attention_shapes(program) == (AttentionShape(4, 2, 12, 20),)


def test_attention_to_chosen_positions_has_a_shape_of_its_own() -> None:
    program = lowered(deepseek_v32.plan(tiny_model("deepseek-v32").config, 64))
    (shape,) = attention_shapes(program)
    assert (shape.top_k, shape.few_rows, shape.many_rows, shape.tiles) == (16, 1, 1, 1)


def test_attention_to_vectors_for_several_tokens_has_a_shape_of_its_own() -> None:
    program = lowered(deepseek_v4.plan(tiny_model("deepseek-v4").config, 64))
    found = {(shape.window, shape.top_k, shape.stride) for shape in attention_shapes(program)}
    assert found == {(24, 0, 1), (None, 6, 4), (None, 0, 16)}


def test_encoders_need_no_plan() -> None:
    assert attention_shapes(lowered(TinyEncoder().plan())) == ()
