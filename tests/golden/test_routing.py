"""Mixtures answer as in transformers when a row uses one expert, and when it uses all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from llmd.api import Router
from llmd.engine.loading import OpenDevice
from tests.golden.engines import Architectures, engine, greedy_tokens, logits_error
from tests.golden.expected import read_expected
from tests.golden.models.catalog import CASES
from tests.golden.models.routing import ROUTING_CASES
from tests.golden.models.tiny import TinyModel
from tests.golden.mutations import Mutation

BOUND = 1e-9

each_case = pytest.mark.parametrize("case", ROUTING_CASES, ids=[case.name for case in ROUTING_CASES])


@pytest.mark.parametrize("device", ["cpu", "reference"])
@each_case
def test_answers_are_those_of_transformers(
    case: TinyModel,
    device: str,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    expected = read_expected(case.name)
    with engine(case, checkpoint(case), architectures, open_device, device=device) as core:
        assert logits_error(core, case, expected) <= BOUND
        assert greedy_tokens(core, case) == expected.tokens.tolist()


@each_case
def test_one_expert_more_or_less_breaks_the_bound(
    case: TinyModel,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    field = "top_k_experts" if "top_k_experts" in case.config else "num_experts_per_tok"
    other = 2 if case.config[field] == 1 else case.config[field] - 1
    wrong = Mutation(case.name, "another number", {field: other}).architectures(architectures)
    with engine(case, checkpoint(case), wrong, open_device, device="reference") as core:
        assert logits_error(core, case, read_expected(case.name)) > BOUND


def test_each_family_has_models_with_one_expert_and_with_all(architectures: Architectures) -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for case in (*CASES, *ROUTING_CASES):
        plan = architectures[case.config["architectures"][0]].plan(case.config, None)
        for op in (op for part in plan.parts for op in part.ops if isinstance(op, Router)):
            count = op.weight.shape[0]
            found[plan.architecture].add({1: "one", count: "all"}.get(op.top_k, "some"))
    assert len(found) > 15
    assert {family: kinds for family, kinds in found.items() if kinds != {"one", "some", "all"}} == {}
