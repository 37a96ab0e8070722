"""LoRA adapters on a simulated card: tiny models answer as transformers does with the adapters merged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cuda.simulated import NEEDS_COMPILER, open_device
from tests.golden.adapters import ADAPTERS, AdapterCase
from tests.golden.engines import Architectures
from tests.golden.expected import read_expected
from tests.golden.models.tiny import TinyModel
from tests.golden.test_adapters import Engines, answers, each_case, error_of

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
