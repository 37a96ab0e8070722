"""A private file is replaced atomically, and only its owner can read it."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path

import pytest

from llmd.api.errors import LlmdError, NotPermittedError
from llmd.config.private_file import replace_file, replace_private_file


def test_only_the_owner_may_read_and_the_old_content_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file"
    replace_private_file(path, b"old, and longer")
    path.chmod(0o644)
    replace_private_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_what_cannot_be_replaced_stays_and_no_draft_does(tmp_path: Path) -> None:
    path = tmp_path / "taken"
    path.mkdir()
    with pytest.raises(LlmdError, match=f"{path} cannot be written"):
        replace_private_file(path, b"new")
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_made_is_an_error_of_llmd(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(LlmdError, match="cannot be written"):
        replace_private_file(tmp_path / "file" / "below", b"new")


def test_a_folder_of_another_user_is_not_permitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    with pytest.raises(NotPermittedError, match="cannot be written"):
        replace_private_file(tmp_path / "file", b"new")


def test_other_files_get_the_mode_that_is_asked_for(tmp_path: Path) -> None:
    replace_file(tmp_path / "file", b"x", 0o640)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640
