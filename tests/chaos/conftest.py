"""A daemon of one test alone, which may break it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

SLOTS = 4


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
