"""LoRA adapters on a simulated card: tiny models answer as transformers does with the adapters merged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from llmd.builtin.reference.device import ReferenceDevice
from tests.cuda.simulated import NEEDS_COMPILER, open_device
from tests.golden.adapters import ADAPTERS, EIGHT, AdapterCase
from tests.golden.engines import Architectures
from tests.golden.expected import read_expected
from tests.golden.models.tiny import TinyModel
from tests.golden.test_adapters import Engines, answers, answers_with_eight, each_case, error_of

pytestmark = NEEDS_COMPILER

ROUNDED = 1e-4
"""Rows that weights multiply are float16."""


@pytest.fixture
def engines(checkpoint: Callable[[TinyModel], Path], architectures: Architectures, tmp_path: Path) -> Engines:
    return Engines(checkpoint, architectures, lambda _name: open_device(), tmp_path)


@each_case
def test_answers_are_those_of_merged_weights(case: AdapterCase, engines: Engines) -> None:
    with engines.of(case.base, case, activations="f16", kv_dtype="f16") as core:
        assert error_of(core, case) <= ROUNDED
        assert answers(core, case.base, case.name) == [read_expected(case.name).tokens.tolist()]


def test_a_batch_has_answers_with_and_without_an_adapter(engines: Engines) -> None:
    case = ADAPTERS[0]
    with engines.of(case.base, case, activations="f16", kv_dtype="f16") as core:
        found = answers(core, case.base, "", case.name, "")
    plain, adapted = (read_expected(name).tokens.tolist() for name in (case.model, case.name))
    assert found == [plain, adapted, plain]


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_eight_adapters_of_a_mixture_have_the_answers_of_the_reference_in_one_batch(
    engines: Engines, checkpoint: Callable[[TinyModel], Path], architectures: Architectures, tmp_path: Path
) -> None:
    reference = Engines(checkpoint, architectures, lambda _name: ReferenceDevice(), tmp_path / "reference")
    found = []
    for loads in (engines, reference):
        with loads.of(EIGHT[0].base, *EIGHT, slots=1 + len(EIGHT), activations="f16", kv_dtype="f16") as core:
            found.append(answers_with_eight(core))
    assert found[0] == found[1]
