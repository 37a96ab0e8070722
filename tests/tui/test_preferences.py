from __future__ import annotations

from pathlib import Path

from llmd_tui.preferences import NAME, Preferences
from llmd_tui.widgets.table_rows import Sorting


def test_choices_are_kept(tmp_path: Path) -> None:
    chosen = Preferences("monitor", "nord", sorting={"models": Sorting(2, is_reversed=True)})
    chosen.write(tmp_path / "state")
    assert Preferences.read(tmp_path / "state") == chosen


def test_what_cannot_be_read_or_written_is_left(tmp_path: Path) -> None:
    assert Preferences.read(tmp_path) == Preferences()
    (tmp_path / NAME).write_text("{broken")
    assert Preferences.read(tmp_path) == Preferences()
    (tmp_path / "file").write_text("")
    Preferences("chat").write(tmp_path / "file")
