"""Each distribution builds in isolation, from a copy of its sources and the back ends of the wheelhouse."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.environments import Environment

pytestmark = pytest.mark.packaging

ROOT = Path(__file__).parents[2]
COMPILES = pytest.mark.timeout(1800)
"""Compiling takes minutes of two processors, and several times as long where other tests use them."""


@pytest.fixture
def sources(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy of the sources of the distribution in the folder that the test names."""
    leavings = shutil.ignore_patterns("build", "dist", "__pycache__")
    return Path(shutil.copytree(ROOT / request.param, tmp_path / "sources", ignore=leavings))


@pytest.mark.parametrize(
    ("sources", "package"),
    [
        ("daemon", "llmd_daemon"),
        # Set-up has just compiled the same sources, though not in isolation.
        pytest.param("plugins/backend_cpu", "llmd_backend_cpu", marks=[pytest.mark.exhaustive, COMPILES]),
        ("plugins/backend_cuda", "llmd_backend_cuda"),
        ("plugins/backend_vulkan", "llmd_backend_vulkan"),
        ("plugins/transport", "llmd_transport"),
    ],
    indirect=["sources"],
)
def test_builds_what_set_up_built(
    sources: Path, package: str, tmp_path: Path, wheelhouse: Path, daemon_alone: Environment
) -> None:
    daemon_alone.pip("wheel", wheelhouse, "--no-deps", "--wheel-dir", str(tmp_path), str(sources))
    (built,) = tmp_path.glob(f"{package}-*.whl")
    assert (wheelhouse / built.name).exists()
