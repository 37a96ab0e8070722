from __future__ import annotations

from pathlib import Path

from llmd_tui.preferences import NAME, Preferences


def test_choices_are_kept(tmp_path: Path) -> None:
    Preferences("monitor", "nord").write(tmp_path / "state")
    assert Preferences.read(tmp_path / "state") == Preferences("monitor", "nord")


def test_what_cannot_be_read_or_written_is_left(tmp_path: Path) -> None:
    assert Preferences.read(tmp_path) == Preferences()
    (tmp_path / NAME).write_text("{broken")
    assert Preferences.read(tmp_path) == Preferences()
    (tmp_path / "file").write_text("")
    Preferences("chat").write(tmp_path / "file")
