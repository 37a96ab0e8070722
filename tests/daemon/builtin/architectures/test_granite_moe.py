from __future__ import annotations

from llmd.api import Add, Experts, Linear, ModelPlan
from llmd.builtin.architectures.granite_moe import plan
from tests.golden.models.catalog import tiny_model

SHARED = tiny_model("granite-moe-shared").config


def experts(of: ModelPlan) -> Experts:
    return next(op for op in of.parts[2].ops if isinstance(op, Experts))


def test_gates_and_up_matrices_are_one_tensor() -> None:
    gate = experts(plan(SHARED, None)).gate
    assert gate is not None
    assert (gate.name, gate.rows) == ("model.layers.0.block_sparse_moe.input_linear.weight", (0, 34))


def test_a_gguf_file_has_them_apart() -> None:
    apart = plan({**SHARED, "fused_experts": False}, None)
    gate = experts(apart).gate
    assert gate is not None
    assert (gate.name, gate.rows) == ("model.layers.0.mlp.experts.*.gate_proj.weight", None)
    names = {ref.name for ref in apart.tensor_refs()}
    assert "model.layers.0.mlp.shared_expert.up_proj.weight" in names


def test_a_shared_expert_is_optional_and_granites_multipliers_stay() -> None:
    for name, matrices in (("granite-moe", 0), ("granite-moe-shared", 2)):
        part = plan(tiny_model(name).config, None).parts[2]
        assert sum(isinstance(op, Linear) for op in part.ops) == matrices
        residual = part.ops[-1]
        assert isinstance(residual, Add)
        assert residual.scale == 0.8
