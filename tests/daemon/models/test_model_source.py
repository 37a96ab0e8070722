from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import NotFoundError
from llmd.models.gguf.source import GgufSource
from llmd.models.hugging_face import HuggingFaceSource
from llmd.models.meta.source import MetaSource
from llmd.models.model_source import find_source
from tests.corrupt.small_model import SINGLE


def test_a_directory_is_read_in_the_form_it_has(model_directory: Path) -> None:
    assert find_source(model_directory) == HuggingFaceSource(model_directory)


def test_of_two_forms_the_one_with_weights_counts(model_directory: Path) -> None:
    (model_directory / "params.json").touch()
    (model_directory / "consolidated.safetensors").touch()
    assert find_source(model_directory) == HuggingFaceSource(model_directory)
    (model_directory / SINGLE).unlink()
    assert find_source(model_directory) == MetaSource(model_directory)
    (model_directory / "consolidated.safetensors").unlink()
    assert find_source(model_directory) == HuggingFaceSource(model_directory)
    (model_directory / "config.json").unlink()
    assert find_source(model_directory) == MetaSource(model_directory)


def test_an_empty_directory_is_taken_for_one_of_transformers(tmp_path: Path) -> None:
    assert find_source(tmp_path) == HuggingFaceSource(tmp_path)


def test_gguf_files_count_where_there_are_no_other_weights(model_directory: Path) -> None:
    (model_directory / "m.gguf").touch()
    assert find_source(model_directory) == HuggingFaceSource(model_directory)
    (model_directory / SINGLE).unlink()
    assert find_source(model_directory) == GgufSource(model_directory)
    assert find_source(model_directory / "m.gguf") == GgufSource(model_directory / "m.gguf")


@pytest.mark.parametrize("name", ["absent", "absent.gguf", "config.json"])
def test_what_is_neither_a_directory_nor_a_gguf_file_is_not_found(model_directory: Path, name: str) -> None:
    with pytest.raises(NotFoundError, match="neither a directory nor a GGUF file"):
        find_source(model_directory / name)
