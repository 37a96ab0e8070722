from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from llmd.api import CheckpointError, LeftOut, ModelPlan, TensorRef
from llmd.models.checkpoint import Checkpoint
from llmd.models.plan_check import check_plan, find_tensor
from llmd.models.shards import find_shards
from tests.corrupt import small_model
from tests.corrupt.small_model import Tensors
from tests.corrupt.untouchable import map_untouchable


def check(directory: Path, plan: ModelPlan, content: Tensors) -> tuple[str, ...]:
    small_model.write_weights(directory, content)
    with Checkpoint.open(find_shards(directory), mapper=map_untouchable) as checkpoint:
        return check_plan(plan, checkpoint)


def test_what_agrees_passes_in_silence(tmp_path: Path, plan: ModelPlan) -> None:
    assert check(tmp_path, plan, small_model.tensors()) == ()


def test_a_missing_tensor_is_named(tmp_path: Path, plan: ModelPlan) -> None:
    content = small_model.tensors()
    del content["model.layers.1.mlp.up_proj.weight"]
    with pytest.raises(CheckpointError, match="the tensor is missing; the nearest name is") as caught:
        check(tmp_path, plan, content)
    assert caught.value.tensor == "model.layers.1.mlp.up_proj.weight"
    assert caught.value.file == str(tmp_path / "model.safetensors")


def test_many_missing_tensors_are_counted(tmp_path: Path, plan: ModelPlan) -> None:
    content = {name.removeprefix("model."): array for name, array in small_model.tensors().items()}
    with pytest.raises(
        CheckpointError, match=f"as are {len(content) - 2} more .* nearest name is embed_tokens.weight"
    ):
        check(tmp_path, plan, content)


def test_another_shape_is_shown_beside_the_expected_one(tmp_path: Path, plan: ModelPlan) -> None:
    content = small_model.tensors()
    content["model.layers.0.self_attn.k_proj.weight"] = np.zeros((4, 16), np.float32)
    with pytest.raises(
        CheckpointError, match=r"has shape \[4, 16\], the configuration asks for \[8, 16\]"
    ) as caught:
        check(tmp_path, plan, content)
    assert caught.value.tensor == "model.layers.0.self_attn.k_proj.weight"


def test_a_transposed_tensor_is_another_shape(tmp_path: Path, plan: ModelPlan) -> None:
    content = small_model.tensors()
    name = "model.layers.0.mlp.up_proj.weight"
    content[name] = np.ascontiguousarray(content[name].T)
    with pytest.raises(CheckpointError, match=r"has shape \[16, 24\]"):
        check(tmp_path, plan, content)


def test_integers_are_no_weights(tmp_path: Path, plan: ModelPlan) -> None:
    content = small_model.tensors()
    content["model.norm.weight"] = np.zeros(16, np.int32)
    with pytest.raises(CheckpointError, match="has dtype I32, a weight must have F32, F16, BF16"):
        check(tmp_path, plan, content)


def test_the_matrices_of_a_stack_may_be_one_below_the_other(tmp_path: Path) -> None:
    small_model.write_weights(tmp_path, {"w": np.zeros((8, 2), np.float32)})
    with Checkpoint.open(find_shards(tmp_path)) as checkpoint:
        assert find_tensor(TensorRef("w", (4, 2, 2), is_stack=True), checkpoint).shape == (8, 2)
        with pytest.raises(CheckpointError, match="has shape"):
            find_tensor(TensorRef("w", (4, 2, 2)), checkpoint)


@pytest.mark.parametrize("rows", [(0, 9), (-1, 4), (4, 4), (5, 2)])
def test_rows_must_lie_inside(tmp_path: Path, rows: tuple[int, int]) -> None:
    small_model.write_weights(tmp_path, {"w": np.zeros((8, 2), np.float32)})
    with (
        Checkpoint.open(find_shards(tmp_path)) as checkpoint,
        pytest.raises(CheckpointError, match="has 8 rows, the configuration"),
    ):
        find_tensor(TensorRef("w", (8, 2), rows), checkpoint)


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.2.mlp.up_proj.weight",
        "model.layers.0.self_attn.q_proj.bias",
        "model.layers.1.self_attn.q_norm.weight",
        "model.layers.1.self_attn.q_proj.lora_A.default.weight",
    ],
)
def test_a_tensor_of_the_layers_that_the_plan_ignores_is_an_error(
    tmp_path: Path, plan: ModelPlan, name: str
) -> None:
    with pytest.raises(CheckpointError, match="answers would be wrong") as caught:
        check(tmp_path, plan, small_model.tensors() | {name: np.zeros(4, np.float32)})
    assert caught.value.tensor == name


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.0.self_attn.rotary_emb.inv_freq",
        "model.rotary_emb.inv_freq",
        "embeddings.position_ids",
        "bert.embeddings.token_type_ids",
        "pooler.dense.weight",
        "model.layers.1.self_attn.rotary_emb.cos_cached",
    ],
)
def test_what_follows_from_the_configuration_is_passed_over(
    tmp_path: Path, plan: ModelPlan, name: str
) -> None:
    assert check(tmp_path, plan, small_model.tensors() | {name: np.zeros(2, np.float32)}) == ()


def test_other_unused_tensors_are_noticed(tmp_path: Path, plan: ModelPlan) -> None:
    extra: Tensors = {f"vision.layers.{i}.weight": np.zeros(2, np.float32) for i in range(5)}
    notices = check(tmp_path, plan, small_model.tensors() | extra)
    assert len(notices) == 1
    assert notices[0].startswith("5 tensors are not used: vision.layers.0.weight, ")


def test_what_a_plan_leaves_out_is_counted_and_said_even_among_the_layers(
    tmp_path: Path, plan: ModelPlan
) -> None:
    plan = msgspec.structs.replace(plan, left_out=(LeftOut("vision", ("tower.", ".lora_A.")),))
    names = ("tower.0.weight", "model.layers.0.mlp.up_proj.lora_A.vision.weight", "other.weight")
    notices = check(tmp_path, plan, small_model.tensors() | {name: np.zeros(2, np.float32) for name in names})
    assert notices == (
        "2 tensors for vision are left out: llmd runs only the text model",
        "1 tensors are not used: other.weight",
    )


def test_a_head_beside_a_tied_embedding_is_noticed(tmp_path: Path, plan: ModelPlan) -> None:
    tied_head = msgspec.structs.replace(
        plan.parts[-1],
        ops=tuple(
            msgspec.structs.replace(op, weight=TensorRef("model.embed_tokens.weight", (260, 16)))
            if op.kind == "head"
            else op
            for op in plan.parts[-1].ops
        ),
    )
    tied = msgspec.structs.replace(plan, parts=(*plan.parts[:-1], tied_head))
    assert check(tmp_path, tied, small_model.tensors()) == (
        "lm_head.weight is not used: the configuration ties the head to the embedding",
    )
