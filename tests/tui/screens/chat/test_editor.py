from __future__ import annotations

import sys
from pathlib import Path

import pytest

from llmd.api.errors import LlmdError
from llmd_tui.screens.chat.editor import edited


def editor(tmp_path: Path, code: str) -> str:
    """Return the command of an editor that runs ``code`` with the file's path in ``path``."""
    script = tmp_path / "my editor.py"
    script.write_text(f"import pathlib, sys\npath = pathlib.Path(sys.argv[1])\n{code}\n")
    return f"{sys.executable} '{script}'"


def test_the_text_comes_back_as_the_editor_left_it(tmp_path: Path) -> None:
    command = editor(tmp_path, "path.write_text(path.read_text() + ' and more\\n')")
    assert edited("some", {"EDITOR": command}) == "some and more"
    assert edited("some", {"VISUAL": command, "EDITOR": "false"}) == "some and more"


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    command = editor(tmp_path, "path.write_text(oct(path.stat().st_mode & 0o777))")
    assert edited("", {"EDITOR": command}) == "0o600"


def test_an_editor_that_fails_is_said(tmp_path: Path) -> None:
    with pytest.raises(LlmdError, match="the text stays as it was"):
        edited("some", {"EDITOR": editor(tmp_path, "sys.exit(1)")})
    with pytest.raises(LlmdError, match=r"cannot be started.*set \$EDITOR"):
        edited("some", {"EDITOR": str(tmp_path / "none")})
