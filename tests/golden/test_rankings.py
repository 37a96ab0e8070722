"""A reranker asks and scores as in transformers, on every backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from llmd.api.messages import StopParams, Submit
from llmd.api.samplers import SamplingParams
from llmd.chat.model_text import ModelText, load_model_text
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.engine.loading import OpenDevice
from tests.golden.engines import Architectures, engine
from tests.golden.rankings import ExpectedRanking, read_ranking
from tests.golden.test_goldens import each_device
from tests.serving.reranker import CASE, DOCUMENTS, QUERY, write_reranker

TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_reranker(tmp_path_factory.mktemp("rankings") / CASE.name)


@pytest.fixture(scope="module")
def text(directory: Path) -> Iterator[ModelText]:
    with TemplateRenderer() as renderer:
        yield load_model_text(directory, renderer)


@pytest.fixture(scope="module")
def expected() -> ExpectedRanking:
    return read_ranking(CASE)


@each_device
def test_log_odds_are_those_of_transformers(
    device: str,
    directory: Path,
    text: ModelText,
    expected: ExpectedRanking,
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    prompts = [text.encode_pair(QUERY, document) for document in DOCUMENTS]
    assert [len(prompt) for prompt in prompts] == expected.lengths.tolist()
    params = SamplingParams(seed=0, temperature=0.0, logprobs=0, logprob_ids=text.as_reranker().answer_ids)
    odds: dict[int, float] = {}
    with engine(CASE, directory, architectures, open_device, device=device) as core:
        for place, prompt in enumerate(prompts):
            core.submit(Submit(place, prompt, params, StopParams(max_tokens=1)))
        while core.busy:
            for token in core.step().tokens:
                assert token.logprobs is not None
                true, false = token.logprobs.top
                odds[token.request_id] = true - false
    np.testing.assert_allclose(
        [odds[place] for place in range(len(DOCUMENTS))], expected.log_odds, atol=TOLERANCE
    )
