from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import LlmdError
from llmd_tui.screens.chat.attachments import LONG_PASTE, chip, pasted, path_completions, read_attachment
from llmd_tui.screens.chat.store.records import Attachment


def test_a_text_file_is_read_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("größe")
    attachment = read_attachment(str(tmp_path / "notes.md"))
    assert attachment == Attachment("notes.md", "größe")
    assert chip(attachment) == "notes.md, 7 B"
    assert chip(Attachment("big", "x" * 2048)) == "big, 2.0 KiB"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe\x00", "is not a text file"),
        (b"text\0more", "is not a text file"),
        (b" \n", "is empty"),
        (b"x" * ((1 << 20) + 1), "is larger than 1 MiB"),
        (None, "cannot be read: No such file"),
    ],
    ids=["bytes", "null", "empty", "large", "missing"],
)
def test_other_files_are_refused_in_words(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LlmdError, match=words):
        read_attachment(str(path))


def test_a_long_paste_is_attached_and_a_short_one_is_typed() -> None:
    assert pasted("short", 0) is None
    assert pasted("x" * (LONG_PASTE + 1), 1) == Attachment("pasted text 2", "x" * (LONG_PASTE + 1))


def test_paths_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("file.txt", "File2.txt", ".hidden", "folder/inside"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert path_completions("f") == ["file.txt", "folder/"]
    assert path_completions("") == ["file.txt", "File2.txt", "folder/"]
    assert path_completions(".h") == [".hidden"]
    assert path_completions("folder/") == ["folder/inside"]
    assert path_completions("missing/") == []
