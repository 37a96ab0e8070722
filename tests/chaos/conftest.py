"""A daemon of one test alone, which may break it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugin_sites import Site, site
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon
from tests.serving.simulated_card import install_card

__all__ = ["site"]

SLOTS = 4
SLOW_STEP_S = 0.01
"""A step of a slow engine: its requests are still running when a busy machine looks at them."""


@pytest.fixture(scope="session")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What probes of devices found, so that only the first engine of all waits for them."""
    return tmp_path_factory.mktemp("probes")


@pytest.fixture
def daemon(tmp_path: Path, probes: Path) -> Iterator[RunningDaemon]:
    """Fewer slots than the tests have streams: some requests are queued."""
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    with running_daemon(directories, slots=SLOTS) as running:
        yield running


@pytest.fixture
def slow_card(site: Site, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a device whose steps take ``SLOW_STEP_S`` longer than they need."""
    install_card(site, monkeypatch, step_s=SLOW_STEP_S)
    return "card:0"


@pytest.fixture
def slow_daemon(tmp_path: Path, probes: Path, slow_card: str) -> Iterator[RunningDaemon]:
    """Like ``daemon``, with a slow engine."""
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    with running_daemon(directories, device=slow_card, slots=SLOTS) as running:
        yield running
