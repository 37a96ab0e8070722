"""A model is opened with two plans: with the tensor names of transformers, and with those of its files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from llmd.api import Architecture, ModelPlan
from llmd.api.errors import UnsupportedModelError
from llmd.api.ops import Rope
from llmd.api.state_ops import GatedDelta
from llmd.conversion.output_plan import open_source, rotating
from llmd.conversion.tensor_map import map_tensors
from tests.golden.checkpoint import write_checkpoint
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import tiny_model
from tests.serving.model import write_embedding_model


def test_the_plan_has_the_names_of_transformers_whatever_the_files_have(
    tmp_path: Path, architectures: Mapping[str, Architecture]
) -> None:
    source = open_source(write_gguf(tiny_model("llama-f16"), tmp_path / "m.gguf"), architectures)
    source.model.checkpoint.close()
    tensor_map = map_tensors(source.model.plan, source.plan)
    (part,) = tensor_map["model.layers.0.mlp.up_proj.weight"].parts
    assert part.source.name == "blk.0.ffn_up.weight"
    first = next(iter(tensor_map.values()))
    assert (first.ref.name, first.ref.shape) == ("model.embed_tokens.weight", (131, 64))


def test_another_configuration_of_the_text_model_gives_another_plan(
    tmp_path: Path, architectures: Mapping[str, Architecture]
) -> None:
    path = write_checkpoint(tiny_model("qwen3-5"), tmp_path / "m")
    for form in (tiny_model("qwen3-5").config, composite(tiny_model("qwen3-5").config)):
        (path / "config.json").write_text(json.dumps(form))
        source = open_source(path, architectures)
        source.model.checkpoint.close()
        changed = source.plan_with({"negative_rates": True})
        assert [delta.rates_as for delta in deltas(source.plan)] == ["log", "log"]
        assert [delta.rates_as for delta in deltas(changed)] == ["negative", "negative"]


def composite(text: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a model for images with this text model."""
    return {"architectures": ["Qwen3_5ForConditionalGeneration"], "text_config": text}


def deltas(plan: ModelPlan) -> list[GatedDelta]:
    return [op for part in plan.parts for op in part.ops if isinstance(op, GatedDelta)]


def test_rotations_of_every_layer_are_changed(model: Path, architectures: Mapping[str, Architecture]) -> None:
    source = open_source(model, architectures)
    source.model.checkpoint.close()
    for interleaved in (True, False):
        changed = rotating(source.plan, interleaved=interleaved)
        ropes = [op for part in changed.parts for op in part.ops if isinstance(op, Rope)]
        assert {op.interleaved for op in ropes} == {interleaved}
        assert len(ropes) == 2 * source.plan.num_layers


def test_a_model_that_embeds_is_refused(tmp_path: Path, architectures: Mapping[str, Architecture]) -> None:
    with pytest.raises(UnsupportedModelError, match="models that embed or rank texts are not converted yet"):
        open_source(write_embedding_model(tmp_path / "m"), architectures)
