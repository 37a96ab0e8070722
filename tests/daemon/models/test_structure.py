"""What a model consists of. tests/golden/test_draft_heads.py tests what is not loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from llmd.models.open_model import open_model
from llmd.models.structure import ExpertLayers, Structure, structure_of
from tests.daemon.models.gguf.test_config_keys import ARCHITECTURES
from tests.golden.checkpoint import write_checkpoint
from tests.golden.models.catalog import tiny_model
from tests.golden.models.tiny import TinyModel
from tests.golden.multimodal import as_written_now, write_vision_language


def structure(
    name: str, directory: Path, write: Callable[[TinyModel, Path], Path] = write_checkpoint
) -> Structure:
    model = open_model(write(tiny_model(name), directory / name), ARCHITECTURES)
    with model.checkpoint:
        return structure_of(model.plan, model.checkpoint)


def test_a_dense_model_has_only_layers(tmp_path: Path) -> None:
    layers = tiny_model("llama-f16").config["num_hidden_layers"]
    assert structure("llama-f16", tmp_path) == Structure(layers, (), 0, 0, 0, 0, 0, ())


def test_experts_are_counted_with_the_layers_that_have_them(tmp_path: Path) -> None:
    mixtral = structure("mixtral", tmp_path)
    assert mixtral.experts == (ExpertLayers(2, 4, 2, has_shared=False),)
    glm = structure("glm4-moe", tmp_path)
    assert (glm.layers, glm.experts) == (3, (ExpertLayers(2, 8, 3, has_shared=True),))


def test_layers_with_states_and_sinks_are_counted(tmp_path: Path) -> None:
    hybrid = structure("qwen3-next", tmp_path)
    assert (hybrid.layers, hybrid.linear_layers, hybrid.sink_layers) == (3, 2, 0)
    granite = structure("granite-hybrid", tmp_path)
    assert (granite.layers, granite.linear_layers, granite.space_layers) == (3, 0, 2)
    assert structure("gpt-oss", tmp_path).sink_layers == 3


def test_layers_with_chosen_positions_are_counted_also_if_they_have_no_indexer(tmp_path: Path) -> None:
    shared = structure("glm-moe-dsa-shared", tmp_path)
    assert (shared.indexed_layers, shared.chosen_positions) == (6, 9)
    plain = structure("deepseek-v3", tmp_path)
    assert (plain.indexed_layers, plain.chosen_positions) == (0, 0)


def test_a_vision_tower_is_counted_but_is_no_draft_head(tmp_path: Path) -> None:
    def write(case: TinyModel, directory: Path) -> Path:
        name = "Qwen3_5ForConditionalGeneration"
        return write_vision_language(
            case, directory, architecture=name, below=as_written_now, tower=["model.visual"]
        )

    (left_out,) = structure("qwen3-5", tmp_path, write).not_loaded
    assert (left_out.what, left_out.is_draft) == ("vision", False)
    assert (left_out.tensors, left_out.size_bytes) == (1, 64)
