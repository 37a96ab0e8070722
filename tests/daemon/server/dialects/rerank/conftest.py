"""A daemon with one model that ranks and one that does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving.model import write_model
from tests.serving.reranker import RERANKER, write_reranker
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon


@pytest.fixture(scope="session")
def ranking(tmp_path_factory: pytest.TempPathFactory, probes: Path) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path_factory.mktemp("ranking"), cache=probes)
    write_reranker(directories.models / RERANKER)
    write_model(directories.models / MODEL)
    with running_daemon(directories, models=(RERANKER,), slots=2) as running:
        yield running
