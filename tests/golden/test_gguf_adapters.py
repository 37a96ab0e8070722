"""Adapters for models in GGUF files, whose rows have another order, answer as with merged weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llmd.engine.loading import OpenDevice
from tests.golden.adapters import ADAPTERS, AdapterCase
from tests.golden.engines import Architectures
from tests.golden.expected import nmse, read_expected
from tests.golden.gguf_adapter import write_gguf_adapter
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.tiny import TinyModel
from tests.golden.test_adapters import BOUND, Engines, answers, each_case, each_device, error_of

ALIKE = [case for case in ADAPTERS if not case.fields.keys() & {"rank_pattern", "use_rslora"}]
"""Adapters that llama.cpp's converter can express: all products have the same scale."""


@pytest.fixture
def engines(
    request: pytest.FixtureRequest, architectures: Architectures, open_device: OpenDevice, tmp_path: Path
) -> Engines:
    """Models in GGUF; the parameter says whether their adapters are, too."""

    def write_model(model: TinyModel) -> Path:
        return write_gguf(model, tmp_path / f"{model.name}.gguf")

    def write_adapter(case: AdapterCase, path: Path) -> Path:
        return write_gguf_adapter(case, path.with_suffix(".adapter.gguf"))

    write = write_adapter if request.param else AdapterCase.write
    return Engines(write_model, architectures, open_device, tmp_path, write)


@pytest.mark.parametrize("engines", [False], indirect=True, ids=["peft"])
@each_device
@each_case
def test_answers_are_those_of_merged_weights(case: AdapterCase, device: str, engines: Engines) -> None:
    with engines.of(case.base, case, device=device) as core:
        assert error_of(core, case) <= BOUND
        plain, adapted = (read_expected(name).tokens.tolist() for name in (case.model, case.name))
        assert answers(core, case.base, case.name, "") == [adapted, plain]


@pytest.mark.parametrize("engines", [True], indirect=True, ids=["gguf"])
@pytest.mark.parametrize("case", ALIKE, ids=[case.name for case in ALIKE])
def test_adapters_in_gguf_answer_as_those_of_peft(case: AdapterCase, engines: Engines) -> None:
    with engines.of(case.base, case, device="cpu") as core:
        assert error_of(core, case) <= BOUND
        ids = np.array(case.base.prompt, np.int32)
        assert nmse(core.forward(ids), core.forward(ids, case.name)) > 0.01
