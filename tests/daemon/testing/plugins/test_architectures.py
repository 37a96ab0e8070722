"""A family must refuse damaged configurations, and plan a model that runs."""

from __future__ import annotations

import msgspec
import pytest

from llmd.api.errors import CheckpointError
from llmd.api.plan import ModelPlan
from llmd.api.plugins import Architecture, Config
from llmd.builtin.architectures.llama import plan
from llmd.testing.conformance import CaseResult
from llmd.testing.plugins.architectures import check_architecture
from llmd.testing.plugins.results import NotTested


def without_norms(config: Config, context_len: int | None) -> ModelPlan:
    """Plan a model in which an op reads a value that nothing writes."""
    made = plan(config, context_len)
    parts = [
        msgspec.structs.replace(part, ops=tuple(op for op in part.ops if op.kind != "norm"))
        for part in made.parts
    ]
    return msgspec.structs.replace(made, parts=tuple(parts))


def needs_more(config: Config, _context_len: int | None) -> ModelPlan:
    raise CheckpointError("text_config is missing", file="config.json")


def careless(config: Config, context_len: int | None) -> ModelPlan:
    return plan(config["text_config"], context_len)


def test_a_sound_family_passes_both() -> None:
    results = list(check_architecture(Architecture(("LlamaForCausalLM", "llama"), plan)))
    assert [result for result in results if not isinstance(result, CaseResult) or result.problem] == []
    assert len(results) == 2


def test_an_unplanned_error_is_a_failure() -> None:
    refuses, runs = check_architecture(Architecture(("Made",), careless))
    assert isinstance(refuses, CaseResult)
    assert isinstance(runs, CaseResult)
    assert "raised KeyError: 'text_config'" in refuses.problem
    assert "raised KeyError" in runs.problem


def test_a_plan_that_cannot_run_is_a_failure() -> None:
    _, runs = check_architecture(Architecture(("Made",), without_norms))
    assert isinstance(runs, CaseResult)
    assert runs.problem.startswith("raised ")


def test_a_family_with_other_fields_is_not_tested_further() -> None:
    refuses, skipped = check_architecture(Architecture(("Made",), needs_more))
    assert refuses == CaseResult("architecture Made: refuses an empty configuration", None)
    assert isinstance(skipped, NotTested)
    assert "text_config is missing" in skipped.reason


@pytest.mark.parametrize("returned", [None, "plan"])
def test_planning_nothing_is_a_failure(returned: object) -> None:
    refuses, _ = check_architecture(Architecture(("Made",), lambda *_: returned))  # type: ignore[arg-type]
    assert isinstance(refuses, CaseResult)
    assert "without any field" in refuses.problem
