from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmd.api.errors import CheckpointError
from llmd.models.modules_file import MODULES_FILE, Module, read_modules


def test_modules_are_known_by_the_name_of_their_class_and_have_a_folder(tmp_path: Path) -> None:
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (tmp_path / MODULES_FILE).write_text(json.dumps(modules))
    found = read_modules(tmp_path) or ()
    assert [module.kind for module in found] == ["Transformer", "Pooling"]
    assert [module.folder(tmp_path) for module in found] == [tmp_path, tmp_path / "1_Pooling"]


def test_a_model_without_the_file_has_no_modules(tmp_path: Path) -> None:
    assert read_modules(tmp_path) is None


@pytest.mark.parametrize("content", ["{", "{}", '[{"path": "1_Pooling"}]', '[{"type": 3}]'])
def test_a_damaged_file_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / MODULES_FILE).write_text(content)
    with pytest.raises(CheckpointError, match="not a list of modules"):
        read_modules(tmp_path)


@pytest.mark.parametrize("path", ["../x", "/etc", "a/../../b"])
def test_no_module_lies_outside_of_the_model(tmp_path: Path, path: str) -> None:
    with pytest.raises(CheckpointError, match="outside"):
        Module("x.Pooling", path).folder(tmp_path)
