"""A daemon with the tiny model, which every test may use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path_factory.mktemp("daemon"))
    write_model(directories.models / MODEL)
    with running_daemon(directories) as running:
        yield running
