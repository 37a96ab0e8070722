"""Layers and tensors that not every model has, as lines of `llmd show`."""

from __future__ import annotations

from pathlib import Path

from llmd.cli.structure_lines import read_structure, structure_lines
from llmd.models.structure import ExpertLayers, NotLoaded, Structure, VectorLayers
from tests.golden.draft_heads import write_with_draft_head
from tests.golden.models.catalog import tiny_model


def test_a_hybrid_with_experts_and_a_draft_head_is_described(tmp_path: Path) -> None:
    path = write_with_draft_head(tiny_model("qwen3-next"), tmp_path / "m")
    assert list(structure_lines(read_structure(path))) == [
        ["experts", "8 in 3 of 3 layers; a token uses 3, and one that all tokens use"],
        ["attention", "in 1 of 3 layers"],
        ["linear attention", "in 2 of 3 layers"],
        ["not loaded", "a draft head: 13 tensors, 832 B"],
    ]


def test_each_kind_of_layer_and_what_is_not_loaded_has_a_line() -> None:
    experts = (ExpertLayers(3, 8, 2, has_shared=False), ExpertLayers(1, 4, 1, has_shared=True))
    vision = NotLoaded("vision", is_draft=False, tensors=2, size_bytes=3 << 20)
    structure = Structure(
        layers=5,
        experts=experts,
        attention_layers=3,
        window_layers=2,
        window=1024,
        latent_layers=1,
        borrowing_layers=1,
        linear_layers=0,
        space_layers=1,
        sink_layers=4,
        indexed_layers=3,
        chosen_positions=2048,
        vectors=(VectorLayers(2, 4), VectorLayers(1, 128)),
        streams=4,
        not_loaded=(vision,),
    )
    assert list(structure_lines(structure)) == [
        ["experts", "8 in 3 of 5 layers; a token uses 2"],
        ["experts", "4 in 1 of 5 layers; a token uses 1, and one that all tokens use"],
        ["attention", "in 2 of 5 layers"],
        ["sliding window", "of 1,024 positions in 2 of 5 layers"],
        ["latent attention", "in 1 of 5 layers"],
        ["keys of other layers", "in 1 of 5 layers"],
        ["state spaces", "in 1 of 5 layers"],
        ["attention sinks", "in 4 of 5 layers"],
        ["sparse attention", "to at most 2,048 positions in 3 of 5 layers"],
        ["compressed attention", "distant tokens as one vector for 4 in 2 of 5 layers"],
        ["compressed attention", "distant tokens as one vector for 128 in 1 of 5 layers"],
        ["residual streams", "4"],
        ["not loaded", "vision: 2 tensors, 3.0 MiB"],
    ]


def test_a_model_that_cannot_be_opened_has_none(tmp_path: Path) -> None:
    assert read_structure(tmp_path) is None
    assert list(structure_lines(None)) == []
