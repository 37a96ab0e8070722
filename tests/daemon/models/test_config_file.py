from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import CheckpointError, NotFoundError
from llmd.models.config_file import read_config
from llmd.models.hugging_face import MAX_CONFIG_BYTES
from tests.corrupt import small_model


def test_reads_the_configuration_of_a_directory(model_directory: Path) -> None:
    assert read_config(model_directory) == small_model.CONFIG


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="the file is missing") as caught:
        read_config(tmp_path)
    assert caught.value.file == str(tmp_path / "config.json")


def test_a_missing_directory_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="neither a directory nor a GGUF file"):
        read_config(tmp_path / "absent")


def test_a_file_that_is_too_large_for_a_configuration_is_not_parsed(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b" " * (MAX_CONFIG_BYTES + 1))
    with pytest.raises(CheckpointError, match="larger than"):
        read_config(tmp_path)
