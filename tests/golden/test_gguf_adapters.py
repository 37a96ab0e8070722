"""Adapters for models in GGUF files, whose rows have another order, answer as with merged weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from llmd.api.errors import UnsupportedModelError
from llmd.api.step import Float32
from llmd.engine.loading import OpenDevice
from tests.golden.adapters import ADAPTERS, AdapterCase
from tests.golden.engines import Architectures
from tests.golden.expected import nmse, read_expected
from tests.golden.gguf_adapter import write_gguf_adapter
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import tiny_model
from tests.golden.models.tiny import TinyModel
from tests.golden.test_adapters import BOUND, Engines, answers, each_case, each_device, error_of
from tests.golden.test_gguf import CONVERTED

ALIKE = [case for case in ADAPTERS if not case.fields.keys() & {"rank_pattern", "use_rslora"}]
"""Adapters that llama.cpp's converter can express: all products have the same scale."""


class Everywhere(AdapterCase):
    """An adapter of all projections of a model, but for those of experts."""

    def modules(self) -> dict[str, tuple[int, ...]]:
        return {module: shape for module, shape in super().modules().items() if ".experts." not in module}


PROJECTIONS = [f"{name}_proj" for name in ("q", "k", "v", "o", "qkv", "gate", "up", "down", "gate_up")]
OTHER_FORMS = ("rwkv7", "rwkv7-odd", "falcon-h1", "falcon-h1-plain", "falcon-h1-tied")
"""Models whose projections llama.cpp stores in another form, or with other numbers."""
OTHER_NAMES = ("mamba2", "mamba2-groups", "deepseek-v4-published", "deepseek-v4-some-experts")
"""Models that have no projections of these names."""
FAMILIES = [model for model in CONVERTED if model.name not in (*OTHER_FORMS, *OTHER_NAMES)]


@pytest.fixture
def logits(
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
    tmp_path: Path,
) -> Callable[[TinyModel], list[Float32]]:
    """Computes the logits of a prompt with an adapter, from safetensors and from GGUF."""

    def compute(model: TinyModel) -> list[Float32]:
        case = Everywhere("all", model.name, dict.fromkeys(PROJECTIONS, 3), fields={"r": 3, "lora_alpha": 6})
        rows = []
        for kind, write in (("safetensors", checkpoint), ("gguf", gguf_writer(tmp_path))):
            engines = Engines(write, architectures, open_device, tmp_path / kind)
            with engines.of(model, case, device="cpu", activations="f32") as core:
                rows.append(core.forward(np.array(model.prompt, np.int32), case.name))
        return rows

    return compute


def gguf_writer(folder: Path) -> Callable[[TinyModel], Path]:
    return lambda model: write_gguf(model, folder / f"{model.name}.gguf")


@pytest.fixture
def engines(
    request: pytest.FixtureRequest, architectures: Architectures, open_device: OpenDevice, tmp_path: Path
) -> Engines:
    """Models in GGUF; the parameter says whether their adapters are, too."""

    def write_adapter(case: AdapterCase, path: Path) -> Path:
        return write_gguf_adapter(case, path.with_suffix(".adapter.gguf"))

    write = write_adapter if request.param else AdapterCase.write
    return Engines(gguf_writer(tmp_path), architectures, open_device, tmp_path, write)


@pytest.mark.parametrize("engines", [False], indirect=True, ids=["peft"])
@each_device
@each_case
def test_answers_are_those_of_merged_weights(case: AdapterCase, device: str, engines: Engines) -> None:
    with engines.of(case.base, case, device=device) as core:
        assert error_of(core, case) <= BOUND
        plain, adapted = (read_expected(name).tokens.tolist() for name in (case.model, case.name))
        assert answers(core, case.base, case.name, "") == [adapted, plain]


@pytest.mark.parametrize("model", FAMILIES, ids=[model.name for model in FAMILIES])
def test_each_family_answers_as_from_safetensors(
    model: TinyModel, logits: Callable[[TinyModel], list[Float32]]
) -> None:
    """The converter's order of rows is that of `tests.golden.gguf_layout`."""
    plain, converted = logits(model)
    assert nmse(converted, plain) <= BOUND


@pytest.mark.parametrize("name", OTHER_FORMS)
def test_families_whose_projections_have_another_form_are_refused(
    name: str, logits: Callable[[TinyModel], list[Float32]]
) -> None:
    with pytest.raises(UnsupportedModelError, match=r"attn\..*_proj: llama\.cpp's converter"):
        logits(tiny_model(name))


@pytest.mark.parametrize("engines", [True], indirect=True, ids=["gguf"])
@pytest.mark.parametrize("case", ALIKE, ids=[case.name for case in ALIKE])
def test_adapters_in_gguf_answer_as_those_of_peft(case: AdapterCase, engines: Engines) -> None:
    with engines.of(case.base, case, device="cpu") as core:
        assert error_of(core, case) <= BOUND
        ids = np.array(case.base.prompt, np.int32)
        assert nmse(core.forward(ids), core.forward(ids, case.name)) > 0.01
