from __future__ import annotations

import math

import pytest

from llmd.api import Embed, Head, ModelPlan, TensorRef
from llmd.api.tensors import MEMBER
from llmd.builtin.architectures.plugin import llmd_architectures
from tests.golden.models.catalog import CASES, tiny_model
from tests.golden.models.tiny import TinyModel
from tests.golden.mxfp4 import with_joined_shapes
from tests.golden.rwkv_tensors import RWKV7
from tests.golden.space_tensors import BACKBONES, layer_kinds
from tests.golden.tensors import tensor_shapes


def plan_of(case: TinyModel, context_len: int | None = None) -> ModelPlan:
    known = {name: one for one in llmd_architectures() for name in one.names}
    return known[case.config["architectures"][0]].plan(case.config, context_len)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_plan_uses_exactly_the_tensors_of_its_checkpoint(case: TinyModel) -> None:
    refs = plan_of(case).tensor_refs()
    expected = with_joined_shapes(tensor_shapes(case.config))
    found = {name: shape for ref in refs for name, shape in stored(ref)}
    vectors = {name: (math.prod(expected[name]),) for name, shape in found.items() if len(shape) == 1}
    assert found == expected | vectors  # vectors may be stored with other axes


def stored(ref: TensorRef) -> list[tuple[str, tuple[int, ...]]]:
    """Name and shape of the tensors of a reference: of a stack, perhaps one for each member."""
    if ref.name.endswith(("kv_b_proj.weight", "wo_a.weight")):  # the matrices of heads, one below the other
        return [(ref.name, (ref.shape[0] * ref.shape[1], ref.shape[2]))]
    if MEMBER not in ref.name:
        return [(ref.name, ref.shape)]
    return [(ref.name.replace(MEMBER, str(number)), ref.shape[1:]) for number in range(ref.shape[0])]


WHOLE = [case for case in CASES if case.config["model_type"] not in (*BACKBONES, RWKV7)]
HALVES = [case for case in CASES if case.config["model_type"] in BACKBONES]


@pytest.mark.parametrize("case", HALVES, ids=[case.name for case in HALVES])
def test_a_layer_with_one_half_has_one_part_and_a_group_if_it_keeps_something(case: TinyModel) -> None:
    plan = plan_of(case)
    parts = [part for part in plan.parts if part.layer is not None]
    assert [part.layer for part in parts] == list(range(len(layer_kinds(case.config))))
    mixers = [part.layer for part in parts if part.kind == "mixer"]
    assert sorted(layer for group in plan.groups for layer in group.layers) == mixers


@pytest.mark.parametrize("case", WHOLE, ids=[case.name for case in WHOLE])
def test_every_layer_that_keeps_something_has_a_group_for_it_and_all_have_two_parts(case: TinyModel) -> None:
    plan = plan_of(case)
    layers = list(range(case.config["num_hidden_layers"]))
    keeping = layers[: len(layers) - case.config.get("num_kv_shared_layers", 0)]
    kept = [(group.kind, group.window, group.key_dim, group.stride) for group in plan.groups]
    found = [(what, layer) for what, group in zip(kept, plan.groups, strict=True) for layer in group.layers]
    assert len(set(found)) == len(found)
    assert sorted({layer for *_, layer in found}) == keeping
    assert [part.layer for part in plan.parts if part.kind == "mixer"] == layers
    assert [part.layer for part in plan.parts if part.kind == "ffn"] == layers
    assert [part.kind for part in (plan.parts[0], plan.parts[-1])] == ["embed", "head"]


def test_layers_of_one_window_share_a_group() -> None:
    groups = plan_of(tiny_model("gemma3")).groups
    assert [(group.id, group.window, group.layers) for group in groups] == [(0, 12, (0, 1)), (1, None, (2,))]


def test_the_head_of_a_tied_model_is_the_embedding() -> None:
    tied, untied = plan_of(tiny_model("smollm")), plan_of(tiny_model("tinyllama"))
    for plan, name in ((tied, "model.embed_tokens.weight"), (untied, "lm_head.weight")):
        head = plan.parts[-1].ops[-1]
        assert isinstance(head, Head)
        assert head.weight.name == name
        assert isinstance(plan.parts[0].ops[0], Embed)


def test_the_context_window_is_the_longest_stated_unless_one_is_asked_for() -> None:
    case = tiny_model("llama2-mha")
    assert plan_of(case).context_len == case.config["max_position_embeddings"]
    assert plan_of(case, 33).context_len == 33
    assert plan_of(case, 33).max_context_len == case.config["max_position_embeddings"]
