from __future__ import annotations

import os
from pathlib import Path

import pytest

from llmd.api.errors import ModelError, TokenizerError
from llmd.chat.json_file import MAX_FILE_BYTES, read_file, read_json, read_json_object


def test_absent_object_is_empty(tmp_path: Path) -> None:
    assert read_json_object(tmp_path / "none.json", error=ModelError) == {}


def test_place_of_a_mistake_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ids.json"
    path.write_text('{"a": 1, "b": "2"}')
    with pytest.raises(TokenizerError, match=r"ids\.json .*Expected `int`, got `str` - at `\$\[\.\.\.\]`"):
        read_json(path, dict[str, int], error=TokenizerError)


def test_file_larger_than_any_tokenizer_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(ModelError, match=f"huge.json: larger than {MAX_FILE_BYTES} bytes"):
        read_file(path, error=ModelError)


def test_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    os.mkfifo(path)
    with pytest.raises(TokenizerError, match="not a regular file") as caught:
        read_file(path, error=TokenizerError)
    assert caught.value.hint


def test_link_that_leads_nowhere_is_not_an_absent_file(tmp_path: Path) -> None:
    path = tmp_path / "linked.json"
    path.symlink_to("absent")
    with pytest.raises(ModelError, match="the file is missing"):
        read_json_object(path, error=ModelError)
