from __future__ import annotations

import pytest

from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.models.stored_names import renamed, with_stored_names
from tests.golden.models.catalog import tiny_model
from tests.golden.multimodal import Rename, as_idefics_names_it, as_published, as_written_now
from tests.golden.tensors import tensor_shapes

CASE = tiny_model("llama-mqa-biases")
PLAN = next(one for one in llmd_architectures() if "llama" in one.names).plan(CASE.config, None)


def names(plan: object) -> set[str]:
    return {ref.name for ref in plan.tensor_refs()}  # type: ignore[attr-defined]


def test_names_that_the_checkpoint_has_stay() -> None:
    assert with_stored_names(PLAN, tensor_shapes(CASE.config)) is PLAN


def test_the_prefix_of_the_model_below_the_head_is_left_out_where_the_checkpoint_leaves_it_out() -> None:
    bare = {name.removeprefix("model.") for name in tensor_shapes(CASE.config)}
    renamed = with_stored_names(PLAN, bare)
    assert names(renamed) == bare
    assert renamed.parts[1].ops[1].tensors[1] is not None  # biases too
    assert [op.reads for part in renamed.parts for op in part.ops] == [
        op.reads for part in PLAN.parts for op in part.ops
    ]


@pytest.mark.parametrize("spelled", [as_published, as_written_now, as_idefics_names_it])
def test_the_text_part_of_a_model_that_sees_is_its_language_model(spelled: Rename) -> None:
    inside = {spelled(name) for name in tensor_shapes(CASE.config)}
    assert names(with_stored_names(PLAN, inside)) == inside


def test_a_matrix_below_an_adapter_is_its_base_layer() -> None:
    stored = {name.replace("q_proj.", "q_proj.base_layer.") for name in tensor_shapes(CASE.config)}
    assert names(with_stored_names(PLAN, stored)) == stored


def test_every_tensor_gets_its_other_name() -> None:
    assert names(renamed(PLAN, str.upper)) == {name.upper() for name in names(PLAN)}


def test_a_checkpoint_of_something_else_changes_nothing() -> None:
    assert with_stored_names(PLAN, {"transformer.wte.weight"}) is PLAN
