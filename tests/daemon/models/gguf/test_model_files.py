from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import CheckpointError
from llmd.models.gguf.model_files import first_files, is_gguf, model_files, model_name, part_names

PARTS = tuple(f"m-{number:05}-of-00003.gguf" for number in (1, 2, 3))


def touch(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).touch()


def test_a_directory_may_hold_one_model_beside_other_files(tmp_path: Path) -> None:
    touch(tmp_path, "config.json", "m.gguf", "mmproj-model-f16.gguf", "README.md")
    assert model_files(tmp_path) == (tmp_path / "m.gguf",)


@pytest.mark.parametrize("given", ["", *PARTS])
def test_all_parts_are_found_from_the_directory_and_from_each_of_them(tmp_path: Path, given: str) -> None:
    touch(tmp_path, *PARTS)
    assert model_files(tmp_path / given) == tuple(tmp_path / name for name in PARTS)


def test_a_file_is_found_among_others_by_its_path(tmp_path: Path) -> None:
    touch(tmp_path, "a.gguf", "b.gguf")
    assert model_files(tmp_path / "b.gguf") == (tmp_path / "b.gguf",)


def test_a_directory_with_several_models_names_them(tmp_path: Path) -> None:
    touch(tmp_path, "a.gguf", *PARTS)
    with pytest.raises(CheckpointError, match=f"holds 2 GGUF models: a.gguf, {PARTS[0]}") as caught:
        model_files(tmp_path)
    assert "path of one" in caught.value.hint


@pytest.mark.parametrize("missing", PARTS)
def test_a_missing_part_is_named(tmp_path: Path, missing: str) -> None:
    touch(tmp_path, *(name for name in PARTS if name != missing))
    with pytest.raises(CheckpointError, match=f"the part {missing} is missing"):
        model_files(tmp_path)


def test_a_missing_file_and_a_directory_without_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="the file is missing"):
        model_files(tmp_path / "absent.gguf")
    with pytest.raises(CheckpointError, match="holds no GGUF file"):
        model_files(tmp_path)


@pytest.mark.parametrize("name", ["m-00004-of-00003.gguf", "m-00000-of-00003.gguf", "m-00001-of-99999.gguf"])
def test_a_part_that_cannot_be_one_is_refused(name: str) -> None:
    with pytest.raises(CheckpointError, match="is named as part"):
        part_names(name)


def test_models_are_named_by_their_files() -> None:
    assert model_name("m.gguf") == "m"
    assert model_name(PARTS[1]) == "m"
    assert model_name("m-1-of-3.gguf") == "m-1-of-3"
    assert not is_gguf("m.safetensors")
    assert first_files([*PARTS[1:], "b.gguf", "x.txt"]) == ["b.gguf", PARTS[1]]
