"""What a model consists of. tests/golden/test_draft_heads.py tests what is not loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from llmd.models.open_model import open_model
from llmd.models.structure import ExpertLayers, Structure, VectorLayers, structure_of
from tests.daemon.models.gguf.test_config_keys import ARCHITECTURES
from tests.golden.checkpoint import write_checkpoint
from tests.golden.models.catalog import CASES, tiny_model
from tests.golden.models.tiny import TinyModel
from tests.golden.multimodal import as_written_now, write_vision_language


def structure(
    name: str, directory: Path, write: Callable[[TinyModel, Path], Path] = write_checkpoint
) -> Structure:
    model = open_model(write(tiny_model(name), directory / name), ARCHITECTURES)
    with model.checkpoint:
        return structure_of(model.plan, model.checkpoint)


def made_of(
    layers: int,
    *experts: ExpertLayers,
    windows: tuple[int, int] = (0, 0),
    chosen: int = 0,
    vectors: tuple[VectorLayers, ...] = (),
    **kinds: int,
) -> Structure:
    """A structure with ``kinds``, layers of each kind: ``state_space=2`` are two with state spaces.

    ``windows``: layers that have one, and its length. ``chosen``: most positions of indexed layers.
    """
    return Structure(
        layers=layers,
        experts=experts,
        attention_layers=kinds.get("attention", 0),
        window_layers=windows[0],
        window=windows[1],
        latent_layers=kinds.get("latent", 0),
        borrowing_layers=kinds.get("borrowing", 0),
        linear_layers=kinds.get("linear", 0),
        space_layers=kinds.get("state_space", 0),
        sink_layers=kinds.get("sinks", 0),
        indexed_layers=kinds.get("indexed", 0),
        chosen_positions=chosen,
        vectors=vectors,
        streams=kinds.get("streams", 1),
        not_loaded=(),
    )


def three_of_eight(layers: int) -> ExpertLayers:
    """Layers with eight experts, of which a token uses three, and one for all tokens."""
    return ExpertLayers(layers, 8, 3, has_shared=True)


MODELS = {
    "deepseek-v4": made_of(
        4,
        three_of_eight(4),
        attention=4,
        latent=4,
        sinks=4,
        windows=(4, 24),
        indexed=2,
        chosen=6,
        vectors=(VectorLayers(2, 4), VectorLayers(1, 16)),
        streams=4,
    ),
    "llama-f16": made_of(3, attention=3),
    "qwen2-window-above-first-layer": made_of(2, attention=2, windows=(1, 9)),
    "qwen3-tied": made_of(2, attention=2),
    "phi3-window": made_of(2, attention=2, windows=(2, 13)),
    "gemma2": made_of(3, attention=3, windows=(2, 12)),
    "gemma3": made_of(3, attention=3, windows=(2, 12)),
    "granite": made_of(2, attention=2),
    "olmo2": made_of(2, attention=2),
    "mistral-window": made_of(3, attention=3, windows=(3, 11)),
    "gemma4-per-layer": made_of(5, attention=5, windows=(3, 12), borrowing=2),
    "gemma4-shared": made_of(6, attention=6, windows=(4, 12), borrowing=3),
    "gemma4-moe": made_of(3, three_of_eight(3), attention=3, windows=(2, 12)),
    "mixtral": made_of(2, ExpertLayers(2, 4, 2, has_shared=False), attention=2),
    "qwen2-moe": made_of(2, ExpertLayers(2, 6, 2, has_shared=True), attention=2),
    "qwen3-moe": made_of(3, ExpertLayers(3, 8, 2, has_shared=False), attention=3),
    "olmoe": made_of(2, ExpertLayers(2, 8, 4, has_shared=False), attention=2),
    "granite-moe-shared": made_of(2, ExpertLayers(2, 6, 2, has_shared=True), attention=2),
    "granite-moe": made_of(2, ExpertLayers(2, 6, 2, has_shared=False), attention=2),
    "glm4-moe": made_of(3, three_of_eight(2), attention=3),
    "gpt-oss": made_of(3, ExpertLayers(3, 6, 2, has_shared=False), attention=3, windows=(2, 12), sinks=3),
    "qwen3-next": made_of(3, three_of_eight(3), attention=1, linear=2),
    "qwen3-5": made_of(3, attention=1, linear=2),
    "qwen3-5-moe": made_of(3, three_of_eight(3), attention=1, linear=2),
    "kimi-linear": made_of(4, three_of_eight(3), attention=1, latent=1, linear=3),
    "rwkv7": made_of(3, linear=3),
    "granite-hybrid": made_of(3, attention=1, state_space=2),
    "granite-hybrid-moe": made_of(4, ExpertLayers(4, 6, 2, has_shared=True), attention=2, state_space=2),
    "nemotron-h": made_of(5, attention=1, state_space=2),
    "nemotron-h-moe": made_of(5, three_of_eight(2), attention=1, state_space=2),
    "nemotron-h-latent": made_of(4, three_of_eight(2), attention=1, state_space=1),
    "mamba2": made_of(3, state_space=3),
    "falcon-h1": made_of(3, attention=3, state_space=3),
    "deepseek-v2-lite": made_of(3, three_of_eight(2), attention=3, latent=3),
    "deepseek-v3": made_of(3, three_of_eight(2), attention=3, latent=3),
    "glm4-moe-lite": made_of(3, three_of_eight(2), attention=3, latent=3),
    "deepseek-v32": made_of(3, three_of_eight(2), attention=3, latent=3, indexed=3, chosen=16),
    # Layers without an indexer of their own are indexed too.
    "glm-moe-dsa-shared": made_of(6, three_of_eight(5), attention=6, latent=6, indexed=6, chosen=9),
}


@pytest.mark.parametrize("name", MODELS)
def test_experts_and_layers_of_each_kind_are_counted(name: str, tmp_path: Path) -> None:
    assert structure(name, tmp_path) == MODELS[name]


def test_there_is_a_model_of_each_class() -> None:
    described = {tiny_model(name).config["architectures"][0] for name in MODELS}
    assert {case.config["architectures"][0] for case in CASES} == described


def test_a_vision_tower_is_counted_but_is_no_draft_head(tmp_path: Path) -> None:
    def write(case: TinyModel, directory: Path) -> Path:
        name = "Qwen3_5ForConditionalGeneration"
        return write_vision_language(
            case, directory, architecture=name, below=as_written_now, tower=["model.visual"]
        )

    (left_out,) = structure("qwen3-5", tmp_path, write).not_loaded
    assert (left_out.what, left_out.is_draft) == ("vision", False)
    assert (left_out.tensors, left_out.size_bytes) == (1, 64)
