from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving.model import write_embedding_model
from tests.serving.rankings import ask
from tests.serving.reranker import RERANKER, write_reranker
from tests.serving.running import RunningDaemon, directories_below, running_daemon

EMBEDDER = "embedder"
NAN = b"\xff\xff\xff\x7f"


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory, probes: Path) -> Iterator[RunningDaemon]:
    """An embedding model, and a reranker whose last weights are NaN."""
    directories = directories_below(tmp_path_factory.mktemp("odd"), cache=probes)
    write_embedding_model(directories.models / EMBEDDER)
    weights = write_reranker(directories.models / RERANKER) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[: -4 * 64] + 64 * NAN)
    with running_daemon(directories, models=()) as running:
        yield running


def test_model_that_embeds_does_not_rank(odd: RunningDaemon) -> None:
    refused = ask(odd, model=EMBEDDER)
    assert (refused.status, refused.error["param"]) == (400, "model")
    assert "does not rank documents" in refused.error["message"]


def test_scores_that_are_no_numbers_are_an_error(odd: RunningDaemon) -> None:
    broken = ask(odd)
    assert broken.status == 500
    assert "not finite" in broken.error["message"]
