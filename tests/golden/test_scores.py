"""Cross-encoders give pairs of texts the scores of transformers, whatever shares their steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import Format
from llmd.api.messages import EmbedText, Load, StageSpec
from llmd.engine.embedding_core import EmbeddingCore
from llmd.engine.loading import OpenDevice, load_model
from tests.golden.engines import Architectures
from tests.golden.expected import nmse, read_pooled
from tests.golden.models.embedding import SCORERS, second_at, texts
from tests.golden.models.tiny import TinyModel
from tests.golden.test_goldens import DEVICES

Score = Callable[..., NDArray[np.float32]]

each_case = pytest.mark.parametrize("case", SCORERS, ids=[case.name for case in SCORERS])
each_device = pytest.mark.parametrize("device", DEVICES)


@pytest.fixture
def score(
    checkpoint: Callable[[TinyModel], Path], architectures: Architectures, open_device: OpenDevice
) -> Score:
    """Return a function that scores the pairs of a case in batches."""

    def run(
        case: TinyModel,
        *,
        batch: int = 8,
        quant: Format | None = None,
        typed: bool = True,
        device: str = "auto",
        stages: tuple[StageSpec, ...] = (),
    ) -> NDArray[np.float32]:
        load = Load(
            str(checkpoint(case)), device=device, stages=stages, context_len=case.context_len, quant=quant
        )
        model = load_model(load, architectures, open_device, lambda _: None)
        assert isinstance(model.runner, EmbeddingCore)
        try:
            return numbers(model.runner, case, batch, typed=typed)
        finally:
            model.close()

    return run


def numbers(core: EmbeddingCore, case: TinyModel, batch: int, *, typed: bool) -> NDArray[np.float32]:
    pairs = texts(case)
    found: dict[int, NDArray[np.float32]] = {}
    for at in range(0, len(pairs), batch):
        for number, tokens in enumerate(pairs[at : at + batch], at):
            start = second_at(case, len(tokens)) if typed else None
            core.submit(EmbedText(number, tokens, second_at=start))
        while core.busy:
            found |= {one.request_id: np.frombuffer(one.vector, "<f4") for one in core.step().vectors}
    return np.stack([found[number] for number in range(len(pairs))])


@each_device
@each_case
def test_scores_are_those_of_transformers(case: TinyModel, device: str, score: Score) -> None:
    expected = read_pooled(case.name)[0]["score"]
    found = score(case, device=device)
    assert found.shape == (len(texts(case)), 1)
    assert nmse(found, expected) <= 1e-9


@each_device
@each_case
def test_bits_depend_on_no_batch_and_no_split(case: TinyModel, device: str, score: Score) -> None:
    alone = score(case, device=device, batch=1)
    assert np.array_equal(score(case, device=device), alone)
    stages = (StageSpec(device, "0", "0"), StageSpec(device, "1", "1"))
    assert np.array_equal(score(case, stages=stages), alone)


@each_case
def test_eight_bit_weights_stay_near(case: TinyModel, score: Score) -> None:
    assert nmse(score(case, device="reference", quant="q8"), read_pooled(case.name)[0]["score"]) <= 2e-2


def test_the_bound_notices_that_texts_are_not_told_apart(score: Score) -> None:
    case = SCORERS[0]
    assert nmse(score(case, device="reference", typed=False), read_pooled(case.name)[0]["score"]) > 1e-6
