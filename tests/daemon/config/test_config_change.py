from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from llmd.api.errors import ConfigError
from llmd.config.config_change import change_file, errors_of_text, joined, read_text
from llmd.config.toml_edit import with_value


def test_a_changed_file_keeps_its_mode_and_a_new_one_is_private(tmp_path: Path) -> None:
    file = tmp_path / "new" / "config.toml"
    change_file(file, lambda text: f"{text}[engine]\n", private=True)
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("[engine]\n", 0o600)
    file.chmod(0o640)
    change_file(file, lambda text: f"{text}slots = 3\n", private=True)
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("[engine]\nslots = 3\n", 0o640)
    change_file(tmp_path / "system.toml", str, private=False)
    assert stat.S_IMODE((tmp_path / "system.toml").stat().st_mode) == 0o644
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["config.toml", "new", "system.toml"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles" / "llmd.toml").write_text("")
    link = tmp_path / "config.toml"
    link.symlink_to("dotfiles/llmd.toml")
    change_file(link, lambda _text: "[engine]\n", private=True)
    assert link.is_symlink()
    assert (tmp_path / "dotfiles" / "llmd.toml").read_text() == "[engine]\n"


def test_an_error_anywhere_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[engine]\nslots = 0\n")
    before = os.stat_result(file.stat())
    with pytest.raises(ConfigError, match=rf"engine\.slots from {file}:2 is 0"):
        change_file(file, lambda text: text + "max_ctx = 3\n", private=True)
    assert file.read_text() == "[engine]\nslots = 0\n"
    assert file.stat().st_ino == before.st_ino


def test_changes_at_the_same_time_are_all_made(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    names = ("slots", "threads", "max_ctx", "prefill_chunk")

    def set_one(name: str) -> None:
        change_file(file, lambda text: with_value(text, ("engine", name), 3), private=True)

    threads = [threading.Thread(target=set_one, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(file.read_text().splitlines()) == sorted(["[engine]", *(f"{name} = 3" for name in names)])


def test_all_errors_of_a_text_are_in_the_order_of_their_lines() -> None:
    text = (
        '[engine]\nslots = "x"\nslot = 1\n[server]\naddr = ["a:b", "127.0.0.1:1"]\n[client]\nhost = "a b/c"\n'
    )
    errors = errors_of_text(Path("c.toml"), text)
    assert [error.line for error in errors] == [2, 3, 5, 7]
    told = joined(errors)
    assert all(f"c.toml:{line}" in told.message for line in (2, 3, 5, 7))
    assert "the nearest name is engine.slots" in told.message


def test_line_breaks_are_read_as_they_are(tmp_path: Path) -> None:
    assert read_text(tmp_path / "none") == ("", None)
    (tmp_path / "c.toml").write_bytes(b"[a]\r\n")
    assert read_text(tmp_path / "c.toml")[0] == "[a]\r\n"
    with pytest.raises(ConfigError, match="cannot be read"):
        read_text(tmp_path)
