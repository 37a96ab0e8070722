from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import NotFoundError
from llmd.models.gguf.model_metadata import gguf_metadata
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import tiny_model


def test_the_metadata_of_a_model_are_those_of_its_first_file(tmp_path: Path) -> None:
    write_gguf(tiny_model("llama2-mha"), tmp_path / "m.gguf", num_parts=3)
    metadata = gguf_metadata(tmp_path)
    assert metadata is not None
    assert metadata["general.architecture"] == "llama"


def test_a_model_of_another_form_has_none(model_directory: Path) -> None:
    assert gguf_metadata(model_directory) is None
    (model_directory / "m.gguf").touch()
    assert gguf_metadata(model_directory) is None


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        gguf_metadata(tmp_path / "m.gguf")
