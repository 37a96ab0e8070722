from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmd.config import Settings, load_settings
from llmd.config.changes import NEXT_LOAD, NOW, Change, applies, changes, without_restart
from llmd.config.setting_values import setting_fields
from tests.serving.running import directories_below


@pytest.fixture
def directories(tmp_path: Path) -> Any:
    (tmp_path / "config").mkdir()
    return directories_below(tmp_path)


def read(directories: Any, text: str) -> Settings:
    directories.user_config.write_text(text)
    return load_settings(environ={}, directories=directories)


def test_every_change_says_when_it_applies(directories: Any) -> None:
    old = read(directories, "[server]\nmax_queue = 3\n")
    new = read(directories, '[server]\nmax_queue = 4\naddr = ["127.0.0.1:1"]\n[engine]\nslots = 2\n')
    assert changes(old, new) == [
        Change("server.addr", (), ("127.0.0.1:1",), "restart"),
        Change("server.max_queue", 3, 4, "now"),
        Change("engine.slots", 8, 2, "next_load"),
    ]
    assert changes(new, new) == []


def test_settings_of_one_model_are_compared_with_those_of_all(directories: Any) -> None:
    old = read(directories, "[engine]\nslots = 2\n[models.tiny]\nslots = 3\n")
    new = read(directories, '[engine]\nslots = 2\n[models."a/b"]\nkeep_alive = "1h"\n')
    assert changes(old, new) == [
        Change('models."a/b".keep_alive', 300.0, 3600.0, "now"),
        Change("models.tiny.slots", 3, 2, "next_load"),
    ]


def test_settings_of_commands_are_none_of_the_daemon(directories: Any) -> None:
    assert changes(read(directories, ""), read(directories, "[client]\ntimeout_s = 5\n")) == []


def test_what_needs_a_restart_keeps_its_value(directories: Any) -> None:
    old = read(directories, "[server]\nmax_body = 5\n")
    new = read(directories, "[server]\nmax_body = 6\nmax_queue = 7\n")
    kept = without_restart(old, new)
    assert (kept.config.server.limits.max_body, kept.config.server.queue.max_queue) == (5, 7)
    assert [change.setting for change in changes(kept, new)] == ["server.max_body"]


def test_the_lists_name_settings_that_exist() -> None:
    assert setting_fields().keys() >= NOW | NEXT_LOAD
    assert not NOW & NEXT_LOAD
    assert applies("server.tls_cert") == "restart"
