"""Written headers are read back unchanged."""

from __future__ import annotations

from pathlib import Path

from llmd.models.new_weights import NewTensor, write_header
from llmd.models.safetensors import SafetensorsFile
from llmd.models.safetensors_writer import safetensors_layout

TENSORS = (NewTensor("b", "bf16", (3, 5)), NewTensor("a", "f32", (7,)), NewTensor("none", "f16", (0, 2)))


def test_the_reader_finds_every_tensor_in_its_place(tmp_path: Path) -> None:
    layout = safetensors_layout(TENSORS)
    write_header(tmp_path / "m.safetensors", layout)
    with SafetensorsFile.open(tmp_path / "m.safetensors") as file:
        found = file.header.entries.values()
        assert [(entry.name, entry.dtype, entry.shape) for entry in found] == [
            ("b", "BF16", (3, 5)), ("a", "F32", (7,)), ("none", "F16", (0, 2)),
        ]  # fmt: skip
        assert tuple(file.header.data_start + entry.begin for entry in found) == layout.begins
        assert file.header.metadata == {"format": "pt"}


def test_data_begin_aligned() -> None:
    assert all(
        safetensors_layout((NewTensor("a" * length, "f32", (1,)),)).begins[0] % 8 == 0
        for length in range(1, 9)
    )


def test_a_file_may_hold_no_tensor(tmp_path: Path) -> None:
    write_header(tmp_path / "m.safetensors", safetensors_layout(()))
    with SafetensorsFile.open(tmp_path / "m.safetensors") as file:
        assert not file.header.entries
