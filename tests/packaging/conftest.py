"""Environments for tests that install plugins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.environments import EnvironmentFactory
from tests.packaging.user import User, snapshot


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """A folder of wheels in place of a package index."""
    folder = tmp_path / "index"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def shared(new_environment: EnvironmentFactory, wheelhouse: Path) -> User:
    """A user whose environment several tests change; each of them leaves it as it was."""
    return User(new_environment("llmd-daemon"), wheelhouse)


@pytest.fixture
def user(shared: User, index: Path) -> Iterator[User]:
    """A user whose environment is unchanged after each test."""
    before = snapshot(shared.environment.prefix)
    yield replace(shared, index=index)
    assert snapshot(shared.environment.prefix) == before
