"""`llmd keys add`, and what a running daemon makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.serving.http import send
from tests.serving.running import directories_below, running_daemon

Llmd = Callable[..., Any]


def test_prints_the_key_once_and_keeps_its_digest(llmd: Llmd, tmp_path: Path) -> None:
    done = llmd("keys", "add", "laptop")
    assert (done.code, done.err) == (0, "")
    key = done.out.strip()
    assert key.startswith("llmd-")
    assert key not in (tmp_path / "config" / "llmd" / "keys.json").read_text()
    shown = json.loads(llmd("keys", "add", "other", "--json").out)
    assert shown["name"] == "other"
    assert shown["key"] != key


def test_names_that_are_taken_end_it_with_nine(llmd: Llmd) -> None:
    llmd("keys", "add", "laptop")
    again = llmd("keys", "add", "laptop")
    assert (again.code, again.out) == (9, "")
    assert "llmd keys rm laptop" in again.err


def test_running_daemon_takes_keys_at_once(
    llmd: Llmd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = directories_below(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("LLMD_HOST", f"unix:{directories.user_socket}")
    (tmp_path / "llmd").symlink_to(directories.config)
    directories.config.mkdir()
    with running_daemon(directories, models=(), require_key=True) as daemon:
        assert send(daemon, "GET", "/v1/models").status == 401
        key = {"Authorization": f"Bearer {llmd('keys', 'add', 'laptop').out.strip()}"}
        assert send(daemon, "GET", "/v1/models", headers=key).status == 200
        assert send(daemon, "GET", "/llmd/ps", headers=key).status == 403
        manages = {"Authorization": f"Bearer {llmd('keys', 'add', 'boss', '--manage').out.strip()}"}
        assert send(daemon, "GET", "/llmd/ps", headers=manages).status == 200
        assert llmd("keys", "rm", "laptop").code == 0
        assert send(daemon, "GET", "/v1/models", headers=key).status == 401
        monkeypatch.setenv("LLMD_HOST", str(daemon.tcp))
        assert llmd("ps").code == 4
        monkeypatch.setenv("LLMD_API_KEY", manages["Authorization"].removeprefix("Bearer "))
        assert llmd("ps").code == 0
