"""The tiny model in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llmd.embedded.engine import Engine
from tests.serving.model import write_model


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("embedded") / "tiny")


@pytest.fixture(autouse=True)
def user(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use the directories of a temporary user; all tests share the cached probes."""
    root = tmp_path_factory.getbasetemp() / "embedded-user"
    for kind in ("DATA", "CONFIG", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(root / kind.lower()))
    return root


@pytest.fixture
def engine(directory: Path) -> Iterator[Engine]:
    with Engine.load(directory, "reference", kv_dtype="f32", kv_memory=16 << 20) as engine:
        yield engine
