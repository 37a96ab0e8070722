"""A plan has experts as the checkpoint stores them; tests/golden/test_stored_experts.py tests models."""

from __future__ import annotations

import pytest

from llmd.api import Experts, ModelPlan, Router
from llmd.models.stored_experts import with_stored_experts
from tests.daemon.models.gguf.test_config_keys import plan

LAYER = "model.layers.0."


def names(mixture: ModelPlan) -> set[str]:
    return {ref.name for ref in mixture.tensor_refs()}


def layer_ops(mixture: ModelPlan) -> tuple[Router, Experts]:
    ops = mixture.parts[2].ops
    (router,) = (op for op in ops if isinstance(op, Router))
    (experts,) = (op for op in ops if isinstance(op, Experts))
    return router, experts


def test_a_plan_whose_tensors_are_stored_stays() -> None:
    mixture = plan("qwen3-moe")
    assert with_stored_experts(mixture, names(mixture)) is mixture


@pytest.mark.parametrize(
    ("name", "module", "router"),
    [
        ("mixtral", "mlp", "mlp.gate"),
        ("glm4-moe", "mlp", "mlp.gate"),
        ("granite-moe", "block_sparse_moe", "block_sparse_moe.router"),
    ],
)
def test_gates_and_up_matrices_of_all_experts_may_be_one_tensor(name: str, module: str, router: str) -> None:
    dense = 1 if name == "glm4-moe" else 0
    fused = [f"model.layers.{dense}.{module}.experts.{end}" for end in ("gate_up_proj", "down_proj")]
    stored = {*fused, f"model.layers.{dense}.{router}.weight"}
    found = with_stored_experts(plan(name), stored)
    assert stored <= names(found)
    ops = [op for part in found.parts if part.layer == dense for op in part.ops]
    (experts,) = (op for op in ops if isinstance(op, Experts))
    assert experts.gate is not None
    inner = experts.down.shape[-1]
    assert (experts.gate.rows, experts.up.rows) == ((0, inner), (inner, 2 * inner))
    assert experts.up.shape == (experts.num_experts, 2 * inner, 64)


def test_each_expert_may_have_tensors_of_its_own() -> None:
    stored = {f"{LAYER}mlp.experts.*.{end}_proj.weight" for end in ("gate", "up", "down")}
    found = with_stored_experts(plan("qwen3-5-moe"), stored)
    _, experts = layer_ops(found)
    assert {ref.name for ref in experts.tensors if ref is not None} == stored
    assert experts.up.shape == (8, 32, 64)


def test_what_is_stored_under_no_known_name_stays() -> None:
    mixture = plan("mixtral")
    assert with_stored_experts(mixture, {f"{LAYER}mlp.experts.gate_up_proj"}) is mixture
    gpt_oss = plan("gpt-oss")
    assert with_stored_experts(gpt_oss, {f"{LAYER}mlp.experts.*.up_proj.weight"}) is gpt_oss
