from __future__ import annotations

from pathlib import Path

import pytest

from llmd.config import Directories


def test_follows_the_xdg_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind.lower()))
    directories = Directories.of({"XDG_RUNTIME_DIR": str(tmp_path / "run")})
    assert directories.user_config == tmp_path / "config" / "llmd" / "config.toml"
    assert directories.models == tmp_path / "data" / "llmd" / "models"
    assert directories.state == tmp_path / "state" / "llmd"
    assert directories.log == tmp_path / "state" / "llmd" / "daemon.log"
    assert directories.cache == tmp_path / "cache" / "llmd"
    assert directories.user_socket == tmp_path / "run" / "llmd" / "llmd.sock"


@pytest.mark.parametrize("runtime", [{}, {"XDG_RUNTIME_DIR": ""}, {"XDG_RUNTIME_DIR": "relative"}])
def test_without_a_runtime_folder_the_socket_lies_in_the_private_state_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, runtime: dict[str, str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert Directories.of(runtime).user_socket == tmp_path / "llmd" / "run" / "llmd.sock"
