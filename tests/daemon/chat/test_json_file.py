from __future__ import annotations

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
    with pytest.raises(ModelError, match=f"has {MAX_FILE_BYTES + 1} bytes"):
        read_file(path, error=ModelError)
