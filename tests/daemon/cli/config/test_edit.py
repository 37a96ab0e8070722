"""`llmd config edit` opens the file in an editor, and replaces it only if it is right."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.serving.home import LLMD, Home
from tests.serving.terminal import terminal

Llmd = Callable[..., Any]


def editor(folder: Path, *texts: str) -> str:
    """Return an editor that writes these texts into the file, one each time that it is started."""
    for number, text in enumerate(texts):
        (folder / f"text{number}").write_text(text)
    program = folder / "editor.py"
    program.write_text(
        "import sys, pathlib\n"
        f"texts = sorted(pathlib.Path({str(folder)!r}).glob('text*'))\n"
        "pathlib.Path(sys.argv[1]).write_text(texts[0].read_text())\n"
        "if len(texts) > 1: texts[0].unlink()\n"
    )
    return f"{sys.executable} {program}"


def test_a_right_text_replaces_the_file(
    llmd: Llmd, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", editor(tmp_path, "# mine\n[engine]\nslots = 3\n"))
    done = llmd("config", "edit")
    assert (done.code, file.read_text()) == (0, "# mine\n[engine]\nslots = 3\n")
    assert llmd("config", "edit").out == "nothing was changed\n"
    assert [path.name for path in file.parent.iterdir()] == ["config.toml"]


def test_visual_comes_before_editor_and_a_new_file_starts_with_examples(
    llmd: Llmd, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "false")
    monkeypatch.setenv("VISUAL", "cat")
    done = llmd("config", "edit")
    assert "config show --long" in done.out
    assert not file.exists()
    monkeypatch.setenv("VISUAL", "false")
    assert llmd("config", "edit").code == 1


def test_a_wrong_text_leaves_the_file_and_is_kept_next_to_it(
    llmd: Llmd, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    llmd("config", "set", "slots", "3")
    monkeypatch.setenv("VISUAL", editor(tmp_path, "[engine]\nslots = 0\nslot = 3\n"))
    done = llmd("config", "edit")
    draft = file.with_name("config.draft.toml")
    assert (done.code, file.read_text()) == (2, "[engine]\nslots = 3\n")
    assert all(word in done.err for word in (f"{draft}:2", f"{draft}:3", "the nearest name is engine.slots"))
    assert f"{file} stays as it was; your text is in {draft}" in done.err
    assert draft.read_text() == "[engine]\nslots = 0\nslot = 3\n"


def test_on_a_terminal_the_editor_opens_again(home: Home, tmp_path: Path) -> None:
    program = editor(tmp_path, "[engine]\nslots = 0\n", "[engine]\nslots = 4\n")
    with terminal([*LLMD, "config", "edit"], home.environment | {"VISUAL": program}) as screen:
        screen.wait_for("Edit again?")
        screen.type("\r")
        assert screen.end() == 0
    config = home.folder / "config" / "llmd" / "config.toml"
    assert config.read_text() == "[engine]\nslots = 4\n"
    assert [path.name for path in config.parent.iterdir()] == ["config.toml"]
