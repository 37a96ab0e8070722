from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import LlmdError
from llmd_tui.screens.chat.json_files import MAX_BYTES, read_json


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": [1]}')
    assert read_json(tmp_path / "a.json") == {"a": [1]}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        (b"{", "is not JSON"),
        (b'"\xff"', "is not JSON"),
        (b" " * (MAX_BYTES + 1), "larger than 1 MiB"),
    ],
)
def test_other_files_are_said(tmp_path: Path, content: bytes | None, words: str) -> None:
    file = tmp_path / "a.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(LlmdError, match=words):
        read_json(file)
