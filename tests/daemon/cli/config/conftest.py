"""The configuration file of a user who runs commands in this process."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where ``llmd`` keeps the user's settings; there is none yet."""
    return tmp_path / "config" / "llmd" / "config.toml"
