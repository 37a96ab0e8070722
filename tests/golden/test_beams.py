"""Beam search finds what that of transformers finds, on every backend."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from llmd.api.messages import BeamParams, StopParams, Submit
from llmd.api.results import BeamOutput, Hypothesis
from llmd.api.samplers import SamplingParams
from llmd.engine.core import EngineCore
from llmd.engine.loading import OpenDevice
from tests.golden.beams import CASES, BeamCase, Found, read_found
from tests.golden.engines import Architectures, engine
from tests.golden.models.catalog import tiny_model
from tests.golden.models.tiny import TinyModel

FOUND, VERSIONS = read_found()


def search(core: EngineCore, case: BeamCase) -> tuple[Hypothesis, ...]:
    core.submit(
        Submit(
            request_id=1,
            prompt=tuple(tiny_model(case.model).prompt),
            sampling=SamplingParams(seed=0, logit_bias=case.biases),
            stop=StopParams(case.max_tokens, case.stop_ids),
            beams=BeamParams(case.width, case.best, case.length_penalty, case.early_stopping),
        )
    )
    ended: list[BeamOutput] = []
    while core.busy:
        ended += core.step().beams
    assert (core.report().kv_blocks_used, core.report().state_bytes_used) == (0, 0)
    (output,) = ended
    return output.hypotheses


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize(("case", "found"), list(zip(CASES, FOUND, strict=True)))
def test_answers_and_scores_are_those_of_transformers(
    case: BeamCase,
    found: Found,
    device: str,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    model = tiny_model(case.model)
    with engine(
        model, checkpoint(model), architectures, open_device, device=device, slots=case.width
    ) as core:
        answers = search(core, case)
    assert [list(answer.tokens) for answer in answers] == found.tokens
    assert [answer.score for answer in answers] == pytest.approx(found.scores, abs=1e-4)
    ended = [answer.tokens[-1] in case.stop_ids for answer in answers]
    assert [answer.finish for answer in answers] == ["stop" if one else "length" for one in ended]


def test_the_answers_come_from_the_versions_that_the_oracle_pins() -> None:
    requirements = (Path(__file__).parent / "oracle" / "requirements.txt").read_text()
    pinned = dict(re.findall(r"^(torch|transformers)==(.+)$", requirements, re.MULTILINE))
    assert {name: version.partition("+")[0] for name, version in VERSIONS.items()} == pinned
