"""A user's folders with configuration files."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.config import Directories


@pytest.fixture
def directories(tmp_path: Path) -> Directories:
    return Directories(
        config=tmp_path / "user",
        data=tmp_path / "data",
        state=tmp_path / "state",
        cache=tmp_path / "cache",
        user_socket=tmp_path / "llmd.sock",
        system_config=tmp_path / "system.toml",
    )
