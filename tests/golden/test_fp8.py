"""Tiny models in FP8 answer as torch does with the numbers of their weights, on each backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import TensorRef
from llmd.engine.loading import OpenDevice
from llmd.models import weight_source
from llmd.models.checkpoint import TensorInfo
from llmd.models.formats import fp8
from llmd.models.formats.fp8 import E4M3_NUMBERS
from llmd.models.lowering import lower
from llmd.models.open_model import open_model
from llmd.models.scaled_tensors import RowScales, row_scales
from llmd.models.weight_formats import format_policy
from llmd_backend_cpu.device import describe
from tests.golden.checkpoint import write_checkpoint, write_safetensors
from tests.golden.converted import converted
from tests.golden.engines import Architectures, engine, greedy_tokens, logits_error
from tests.golden.expected import read_expected
from tests.golden.fp8 import ENDS, is_fp8
from tests.golden.models.fp8 import FP8_CASES
from tests.golden.models.tiny import TinyModel
from tests.golden.tensors import draw_tensors
from tests.golden.test_gguf import WITHOUT_GGUF

BOUND = 1e-9

each_case = pytest.mark.parametrize("case", FP8_CASES, ids=[case.name for case in FP8_CASES])
each_device = pytest.mark.parametrize("device", ["cpu", "reference"])


@each_device
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


@pytest.mark.parametrize("case", FP8_CASES, ids=[case.name for case in FP8_CASES])
def test_the_cpu_multiplies_the_stored_numbers(
    case: TinyModel, checkpoint: Callable[[TinyModel], Path], architectures: Architectures
) -> None:
    model = open_model(checkpoint(case), architectures)
    with model.checkpoint:
        format_of = format_policy(model.checkpoint, describe(), None)
        weights = lower(model.plan, 0, len(model.plan.parts), format_of=format_of).weights
    stored = {name for name, _ in draw_tensors(case) if is_fp8(case.config, name)}
    others = [
        weight.ref.name
        for weight in weights
        if weight.ref.name.replace("*", "0") in stored and weight.format != "fp8"
    ]
    assert len(stored) > 5
    assert [name.split(".", 3)[3] for name in others] == turned_in_each_layer(case)


def turned_in_each_layer(case: TinyModel) -> list[str]:
    """What a layer with latent attention reads along the other axis, of which the scales are no rows'."""
    is_latent = "kv_lora_rank" in case.config
    return ["self_attn.kv_b_proj.weight"] * case.config["num_hidden_layers"] if is_latent else []


def of_other_rows(scales: RowScales) -> RowScales:
    return RowScales(np.roll(scales.values, 1, axis=0), scales.group_size)


def of_other_groups(scales: RowScales) -> RowScales:
    return RowScales(np.roll(scales.values, 1, axis=1), scales.group_size)


def inverse(scales: RowScales) -> RowScales:
    return RowScales(np.float32(1) / scales.values, scales.group_size)


WRONG = {"fp8": (of_other_rows, of_other_groups, inverse), "channel": (of_other_rows, inverse)}
"""Mistakes by what has a scale: blocks, or rows; others are of whole matrices, whose rows share a scale."""


def mistakes(case: TinyModel) -> tuple[Callable[[RowScales], RowScales], ...]:
    """Those that change the scales of a case."""
    fields = case.config["quantization_config"]
    groups = fields.get("config_groups", {}).values()
    kinds = {fields["quant_method"], *(group["weights"]["strategy"] for group in groups)}
    return next((wrong for kind, wrong in WRONG.items() if kind in kinds), (inverse,))


@pytest.mark.parametrize(
    ("case", "mistake"),
    [
        pytest.param(case, mistake, id=f"{case.name}-{mistake.__name__}")
        for case in FP8_CASES
        for mistake in mistakes(case)
    ],
)
def test_wrong_scales_break_the_bound(
    case: TinyModel,
    mistake: Callable[[RowScales], RowScales],
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(weight_source, "row_scales", lambda *args: mistake(row_scales(*args)))
    with engine(case, checkpoint(case), architectures, open_device, device="reference") as core:
        assert logits_error(core, case, read_expected(case.name)) > BOUND


@pytest.mark.parametrize("case", [FP8_CASES[6], *FP8_CASES[9:11]], ids=lambda case: case.name)
def test_rows_of_heads_in_turn_have_their_own_scales(
    case: TinyModel,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With scales of as many rows from the first on, answers are others."""

    def of_first_rows(tensor: TensorInfo, scales: NDArray[np.generic], ref: TensorRef) -> RowScales:
        if ref.period is not None:
            ref = msgspec.structs.replace(ref, rows=(0, ref.view_shape[0]), period=None)
        return row_scales(tensor, scales, ref)

    monkeypatch.setattr(weight_source, "row_scales", of_first_rows)
    with engine(case, checkpoint(case), architectures, open_device, device="reference") as core:
        assert logits_error(core, case, read_expected(case.name)) > BOUND


def test_subnormal_numbers_count(
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = FP8_CASES[0]
    normal = np.where(np.abs(E4M3_NUMBERS) < 2.0**-6, np.float32(0), E4M3_NUMBERS)
    monkeypatch.setattr(fp8, "E4M3_NUMBERS", normal)
    with engine(case, checkpoint(case), architectures, open_device, device="reference") as core:
        assert logits_error(core, case, read_expected(case.name)) > BOUND


def test_each_scale_counts(tmp_path: Path, architectures: Architectures, open_device: OpenDevice) -> None:
    """The last scale of each weight, which is that of the smallest block, is 3 % larger in turn."""
    case = replace(FP8_CASES[0], num_shards=1)
    directory = write_checkpoint(case, tmp_path / "model")
    tensors = dict(draw_tensors(case))
    scales = [name for name in tensors if name.endswith(ENDS)]
    assert len(scales) == 14
    for name in scales:
        changed = tensors[name].copy()
        changed[-1, -1] *= 1.03
        write_safetensors(directory / "model.safetensors", tensors | {name: changed}, {})
        with engine(case, directory, architectures, open_device, device="reference") as core:
            assert logits_error(core, case, read_expected(case.name)) > BOUND, name


@pytest.mark.parametrize("quant", ["q8", "q4"])
def test_fp8_may_be_quantised_while_it_loads(
    quant: str,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    case = FP8_CASES[0]
    with engine(case, checkpoint(case), architectures, open_device, device="cpu", quant=quant) as core:
        error = logits_error(core, case, read_expected(case.name))
    assert 1e-6 < error < {"q8": 1e-2, "q4": 1}[quant]


@pytest.mark.parametrize(
    ("case", "target"),
    [
        (FP8_CASES[0], "model.gguf"),
        (FP8_CASES[0], "model"),
        (FP8_CASES[1], "model"),
        (FP8_CASES[2], "model.gguf"),
        (FP8_CASES[2], "model"),
        (FP8_CASES[3], "model.gguf"),
        *((case, "model.gguf") for case in FP8_CASES[6:] if case.name not in WITHOUT_GGUF),
        *((case, "model") for case in (FP8_CASES[6], *FP8_CASES[9:])),
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


@pytest.mark.parametrize("target", ["model.gguf", "model"])
def test_a_conversion_says_that_weights_become_larger(
    target: str, tmp_path: Path, checkpoint: Callable[[TinyModel], Path], architectures: Architectures
) -> None:
    report = converted(checkpoint(FP8_CASES[0]), tmp_path / target, architectures)
    said = [notice for notice in report.notices if "are stored as fp8, which a" in notice]
    assert len(said) == 1
    assert "become f16" in said[0]
