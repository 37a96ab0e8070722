"""Tiny models in NVFP4 answer as torch does with the numbers of their weights, on each backend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmd.engine.loading import OpenDevice
from llmd.models import nvfp4_tensors
from llmd.models.formats.nvfp4 import scales_of
from llmd.models.lowering import lower
from llmd.models.open_model import open_model
from llmd.models.weight_formats import format_policy
from llmd_backend_cpu.device import describe
from tests.golden.checkpoint import write_checkpoint, write_safetensors
from tests.golden.converted import converted
from tests.golden.engines import Architectures, engine, greedy_tokens, logits_error
from tests.golden.expected import read_expected
from tests.golden.models.nvfp4 import NVFP4_CASES
from tests.golden.models.tiny import TinyModel
from tests.golden.nvfp4 import LAST_SCALE, is_nvfp4
from tests.golden.tensors import draw_tensors, tensor_shapes

BOUND = 1e-9

each_case = pytest.mark.parametrize("case", NVFP4_CASES, ids=[case.name for case in NVFP4_CASES])


@pytest.mark.parametrize("device", ["cpu", "reference"])
@each_case
def test_answers_are_those_of_torch(
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
def test_the_cpu_keeps_the_numbers(
    case: TinyModel, checkpoint: Callable[[TinyModel], Path], architectures: Architectures
) -> None:
    model = open_model(checkpoint(case), architectures)
    with model.checkpoint:
        format_of = format_policy(model.checkpoint, describe(), None)
        weights = lower(model.plan, 0, len(model.plan.parts), format_of=format_of).weights
    stored = {name for name in tensor_shapes(case.config) if is_nvfp4(case.config, name)}
    kept = {weight.ref.name for weight in weights if weight.format == "nvfp4"}
    assert kept == {weight.ref.name for weight in weights if weight.ref.name.replace("*", "0") in stored}
    assert len(kept) > 5


def of_other_groups(scales: Any) -> Any:
    return np.roll(scales, 1, axis=1)


def of_other_rows(scales: Any) -> Any:
    return np.roll(scales, 1, axis=0)


@pytest.mark.parametrize("mistake", [of_other_groups, of_other_rows])
@each_case
def test_wrong_scales_break_the_bound(
    case: TinyModel,
    mistake: Callable[[Any], Any],
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        nvfp4_tensors, "scales_of", lambda *args, divides: mistake(scales_of(*args, divides=divides))
    )
    with engine(case, checkpoint(case), architectures, open_device, device="reference") as core:
        assert logits_error(core, case, read_expected(case.name)) > BOUND


@pytest.mark.parametrize("case", [NVFP4_CASES[0], NVFP4_CASES[2]], ids=lambda case: case.name)
def test_the_scale_of_each_matrix_counts(
    case: TinyModel, tmp_path: Path, architectures: Architectures, open_device: OpenDevice
) -> None:
    directory = write_checkpoint(case, tmp_path / "model")
    for path in directory.glob("*.safetensors*"):
        path.unlink()
    tensors = dict(draw_tensors(case))
    modules = ("self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
    last = LAST_SCALE[case.config["quantization_config"]["quant_method"]]
    for name in [f"model.layers.1.{module}.{last}" for module in modules]:  # queries and keys are normalised
        changed = (tensors[name].astype(np.float32) * np.float32(1.03)).reshape(tensors[name].shape)
        write_safetensors(directory / "model.safetensors", tensors | {name: np.array(changed)}, {})
        with engine(case, directory, architectures, open_device, device="reference") as core:
            assert logits_error(core, case, read_expected(case.name)) > BOUND, name


@pytest.mark.parametrize("quant", ["q8", "q4"])
def test_nvfp4_may_be_quantised_while_it_loads(
    quant: str,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    case = NVFP4_CASES[0]
    with engine(case, checkpoint(case), architectures, open_device, device="cpu", quant=quant) as core:
        error = logits_error(core, case, read_expected(case.name))
    assert 1e-6 < error < {"q8": 1e-2, "q4": 1}[quant]


@pytest.mark.parametrize(
    ("case", "target"),
    [
        (NVFP4_CASES[0], "model.gguf"),
        (NVFP4_CASES[1], "model"),
        (NVFP4_CASES[2], "model"),
        (NVFP4_CASES[3], "model.gguf"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_a_conversion_writes_the_numbers(
    case: TinyModel,
    target: str,
    tmp_path: Path,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    converted(checkpoint(case), tmp_path / target, architectures, quant="f32")
    with engine(case, tmp_path / target, architectures, open_device, device="reference") as core:
        assert logits_error(core, case, read_expected(case.name)) <= BOUND
