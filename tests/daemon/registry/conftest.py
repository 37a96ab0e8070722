"""A store over a directory of small models."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.registry.store import Store
from tests.corrupt import small_model


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def store(tmp_path: Path, models: Path) -> Store:
    """The built-in ``guide``, and ``smol``, ``smaller`` and ``org/tiny`` in the models directory."""
    for name in ("smol", "smaller", "org/tiny"):
        small_model.write_small_model(models / name)
    return Store(models, {"guide": small_model.write_small_model(tmp_path / "package" / "files")})
