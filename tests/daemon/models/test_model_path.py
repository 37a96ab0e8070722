from __future__ import annotations

from pathlib import Path

from llmd.models.model_path import files_of, is_model_path, path_name

PARTS = ("m-00001-of-00002.gguf", "m-00002-of-00002.gguf")


def test_a_directory_and_a_gguf_file_may_be_models(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").touch()
    (tmp_path / "m.bin").touch()
    found = [
        name for name in ("", "m.gguf", "m.bin", "absent.gguf", "x" * 300) if is_model_path(tmp_path / name)
    ]
    assert found == ["", "m.gguf"]


def test_a_model_is_called_by_its_path(tmp_path: Path) -> None:
    assert path_name(tmp_path) == tmp_path.name
    assert path_name(tmp_path / PARTS[0]) == "m"


def test_the_files_of_a_model_are_those_beside_it_or_its_parts(tmp_path: Path) -> None:
    for name in (*PARTS, "other.gguf"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "lost").symlink_to("x" * 300)
    assert [path.name for path in files_of(tmp_path)] == [*PARTS, "other.gguf"]
    for name in PARTS:
        assert [path.name for path in files_of(tmp_path / name)] == list(PARTS)
