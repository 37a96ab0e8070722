"""A model is opened with two plans: with the tensor names of transformers, and with those of its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from llmd.api import Architecture
from llmd.api.errors import UnsupportedModelError
from llmd.api.ops import Rope
from llmd.conversion.output_plan import new_tensors, open_source, rotating
from llmd.conversion.tensor_map import map_tensors
from llmd.models.new_weights import NewTensor
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import tiny_model
from tests.serving.model import write_embedding_model


def test_the_plan_has_the_names_of_transformers_whatever_the_files_have(
    tmp_path: Path, architectures: Mapping[str, Architecture]
) -> None:
    source = open_source(write_gguf(tiny_model("llama-f16"), tmp_path / "m.gguf"), architectures)
    source.model.checkpoint.close()
    tensor_map = map_tensors(source.model.plan, source.plan)
    assert tensor_map["model.layers.0.mlp.up_proj.weight"].ref.name == "blk.0.ffn_up.weight"
    (first, *_) = new_tensors(tensor_map, dict.fromkeys(tensor_map, "bf16"))
    assert first == NewTensor("model.embed_tokens.weight", "bf16", (131, 64))


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
