"""Plans with adapters, and adapters that do not fit the model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from llmd.api import Adapt, Architecture, Linear, ModelPlan, TensorRef
from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.models.adapters.adapted_plan import adapted
from llmd.models.lowering import lower
from llmd.models.meta.source import MetaSource
from llmd.models.open_model import open_model
from llmd.testing.adapter_cases import adapted_model, low_rank
from tests.golden.checkpoint import read_safetensors, write_safetensors
from tests.golden.models.mixtures import mixtral
from tests.serving.adapters import write_adapter
from tests.serving.gguf_model import write_gguf_model
from tests.serving.model import write_embedding_model, write_model

WEIGHTS = "adapter_model.safetensors"


@pytest.fixture
def architectures() -> Mapping[str, Architecture]:
    return {name: one for one in llmd_architectures() for name in one.names}


def renamed(folder: Path, name_of: Callable[[str], str]) -> Path:
    """Rename the tensors of an adapter."""
    tensors, _ = read_safetensors(folder / WEIGHTS)
    write_safetensors(folder / WEIGHTS, {name_of(name): one for name, one in tensors.items()}, {})
    return folder


def plan_of(model: Path, adapter: Path, architectures: Mapping[str, Architecture]) -> ModelPlan:
    opened = open_model(model, architectures, adapters={"sql": str(adapter)})
    opened.checkpoint.close()
    return opened.plan


def adapts(plan: ModelPlan) -> list[Adapt]:
    return [op for part in plan.parts for op in part.ops if isinstance(op, Adapt)]


def test_each_product_that_an_adapter_changes_is_followed_by_its_change(
    tmp_path: Path, architectures: Mapping[str, Architecture]
) -> None:
    model = write_model(tmp_path / "model")
    plan = plan_of(model, write_adapter(tmp_path / "adapter", model), architectures)
    first, second, *_ = adapts(plan)
    assert [ref.b.name.split(".")[-3] for (ref,) in first.factors if ref] == ["q_proj", "v_proj"]
    assert first.scales == (2.0, 2.0)
    assert second.factors[0][0] is not None
    assert second.factors[0][0].a.shape == (4, 160)


def test_only_what_is_below_the_layers_must_have_equal_names(
    tmp_path: Path, architectures: Mapping[str, Architecture]
) -> None:
    model = write_model(tmp_path / "model")
    adapter = write_adapter(tmp_path / "adapter", model)
    expected = len(adapts(plan_of(model, adapter, architectures)))
    renamed(adapter, lambda name: name.replace("model.layers", "model.language_model.layers"))
    assert len(adapts(plan_of(model, adapter, architectures))) == expected


def test_a_shape_that_does_not_fit_is_named_with_that_of_the_weight(
    tmp_path: Path, architectures: Mapping[str, Architecture]
) -> None:
    model = write_model(tmp_path / "model")
    adapter = write_adapter(tmp_path / "adapter", model, rank_pattern={"v_proj": 5})
    with pytest.raises(
        CheckpointError, match=r"v_proj\.lora_A\.weight: has shape \[4, 64\], but rank 5 .*\[32, 64\]"
    ):
        plan_of(model, adapter, architectures)


def test_a_module_that_the_model_lacks_is_named(
    tmp_path: Path, architectures: Mapping[str, Architecture]
) -> None:
    model = write_model(tmp_path / "model")
    adapter = renamed(
        write_adapter(tmp_path / "adapter", model), lambda name: name.replace("layers.1.", "layers.9.")
    )
    with pytest.raises(CheckpointError, match=r"the model has no module model\.layers\.9\."):
        plan_of(model, adapter, architectures)


@pytest.mark.parametrize("place", ["lm_head", "model.layers.0.block_sparse_moe.experts.1.w1"])
def test_the_head_and_experts_are_refused(
    tmp_path: Path, place: str, architectures: Mapping[str, Architecture]
) -> None:
    model = write_model(tmp_path / "model", family=mixtral)
    adapter = write_adapter(tmp_path / "adapter", model)
    pair = {
        f"base_model.model.{place}.lora_{end}.weight": np.zeros((4, 64), np.float32) for end in ("A", "B")
    }
    write_safetensors(adapter / WEIGHTS, pair, {})
    with pytest.raises(UnsupportedModelError, match="is no linear layer"):
        plan_of(model, adapter, architectures)


def test_embedding_models_and_those_of_meta_take_no_adapters(
    tmp_path: Path, architectures: Mapping[str, Architecture]
) -> None:
    model = write_model(tmp_path / "model")
    adapter = write_adapter(tmp_path / "adapter", model)
    with pytest.raises(UnsupportedModelError, match="this one embeds"):
        plan_of(write_embedding_model(tmp_path / "embeds"), adapter, architectures)
    with pytest.raises(UnsupportedModelError, match="which checkpoints of Meta"):
        MetaSource(tmp_path).adapter_form()


def test_adapters_change_the_matrices_of_gguf_files(
    tmp_path: Path, architectures: Mapping[str, Architecture]
) -> None:
    directory = write_model(tmp_path / "model")
    adapter = write_adapter(tmp_path / "adapter", directory)
    models = directory, write_gguf_model(tmp_path / "model.gguf")
    expected, found = (adapts(plan_of(model, adapter, architectures)) for model in models)
    assert found == expected


def test_a_fused_matrix_has_its_change_split_by_the_same_rows() -> None:
    plan = adapted_model()
    change = adapts(plan)[0]
    rows = [of_value[0].b.rows for of_value in change.factors if of_value[0]]
    (linear,) = (op for op in plan.parts[1].ops if isinstance(op, Linear) and len(op.outs) == 3)
    assert rows == [weight.rows for weight in linear.weights]


def test_changes_are_made_in_the_slots_of_the_products() -> None:
    plan = adapted_model()
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")
    changes = [slotted for slotted in program.ops if isinstance(slotted.op, Adapt)]
    assert changes
    assert all(slotted.inputs[1:] == slotted.outputs for slotted in changes)
    assert "adapters" in program.needs


def test_a_plan_without_a_changed_product_stays_as_it_is() -> None:
    plan = adapted_model()
    other = TensorRef("other", (4, 4))
    assert adapted(plan, ({"other": low_rank(other, 2)},)) == plan
    assert json.dumps(adapts(plan)[0].num_adapters) == "2"
