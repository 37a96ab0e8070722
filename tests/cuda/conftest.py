"""The same models as in golden tests, and what one card answers to mixed requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cuda.failing_card import FailingCard
from tests.cuda.simulated import open_device
from tests.golden.conftest import architectures, checkpoint, host
from tests.golden.models.compressed import deepseek_v4
from tests.golden.models.llama import llama
from tests.serving.mixed_requests import Answers
from tests.serving.model import write_model
from tests.serving.threaded_engine import ThreadedEngine, answers_of

__all__ = ["architectures", "checkpoint", "host"]

FEW = 8
"""Mixed requests of a test: greedy, sampled, with states of samplers."""


@pytest.fixture(scope="module", params=[llama, deepseek_v4], ids=["plain", "compressed"])
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model") / "model", family=request.param)


@pytest.fixture(scope="module")
def expected(directory: Path) -> Answers:
    """What a card that does not fail answers to ``FEW`` requests."""
    engine = ThreadedEngine(open_device(FailingCard()))
    found, moves = answers_of(engine, directory, "cuda:0", kv_dtype="f16", most=FEW)
    assert engine.end() == 0
    assert (len(found), moves) == (FEW, [])
    return found
