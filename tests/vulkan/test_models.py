"""Engines on the device: tiny models answer as in transformers, the guide as on the reference backend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from llmd.api import Device, DeviceOptions, KVDtype
from llmd.api.messages import Load, StopParams, Submit
from llmd.api.results import Output
from llmd.api.samplers import SamplingParams
from llmd.builtin.guide import guide_directory
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.core import EngineCore
from llmd.engine.loading import load_model
from llmd_backend_vulkan.device import VulkanDevice
from llmd_backend_vulkan.vulkan import PhysicalDevice
from tests.golden.engines import Architectures, engine, greedy_tokens, logits_error
from tests.golden.expected import read_expected
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import CASES, OTHERWISE_IN_GGUF, tiny_model
from tests.golden.models.fp8 import FP8_CASES
from tests.golden.models.nvfp4 import NVFP4_CASES
from tests.golden.models.tiny import TinyModel

pytestmark = pytest.mark.timeout(120)

BOUND = 1e-9
BOUNDS: dict[KVDtype, float] = {"f32": 1e-9, "f16": 1e-5, "bf16": 1e-4, "int8": 1e-3, "int4": 1e-1}


@pytest.mark.parametrize("case", [*CASES, *FP8_CASES, *NVFP4_CASES], ids=lambda case: case.name)
def test_answers_are_those_of_transformers(
    case: TinyModel,
    physical: PhysicalDevice,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
) -> None:
    def open_device(_name: str) -> Device:
        return VulkanDevice(physical, DeviceOptions())

    expected = read_expected(case.name)
    with engine(case, checkpoint(case), architectures, open_device, activations="f32") as core:
        assert logits_error(core, case, expected) <= BOUND
        assert greedy_tokens(core, case) == expected.tokens.tolist()


@pytest.mark.parametrize("name", OTHERWISE_IN_GGUF)
def test_gguf_files_have_the_same_answers(
    name: str, physical: PhysicalDevice, tmp_path: Path, architectures: Architectures
) -> None:
    case, device = tiny_model(name), VulkanDevice(physical, DeviceOptions())
    path, expected = write_gguf(case, tmp_path / "m.gguf"), read_expected(name)
    with engine(case, path, architectures, lambda _name: device, activations="f32") as core:
        assert logits_error(core, case, expected) <= BOUND


@pytest.mark.parametrize("kv_dtype", BOUNDS)
def test_logits_with_each_type_of_keys_are_those_of_transformers(
    kv_dtype: KVDtype,
    physical: PhysicalDevice,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
) -> None:
    case = tiny_model("gemma2")
    device = VulkanDevice(physical, DeviceOptions())
    expected = read_expected(case.name)
    opened = engine(
        case, checkpoint(case), architectures, lambda _name: device, kv_dtype=kv_dtype, activations="f32"
    )
    with opened as core:
        assert logits_error(core, case, expected) <= BOUNDS[kv_dtype]


def test_the_guide_says_what_it_says_on_the_reference_backend(
    physical: PhysicalDevice, architectures: Architectures
) -> None:
    devices: tuple[Device, ...] = (VulkanDevice(physical, DeviceOptions()), ReferenceDevice())
    mine, expected = (said_by_the_guide(device, architectures) for device in devices)
    assert mine == expected
    assert all(len(tokens) == 24 for tokens in mine)


def said_by_the_guide(device: Device, architectures: Architectures) -> list[list[int]]:
    """Return the tokens of four sampled and greedy sequences that run together.

    Keys and values are in float32: rounded to float16, logits of two devices differ by 0.001, which is enough
    for another token where a draw is close to the border between two.
    """
    load = Load(str(guide_directory()), device=device.info.name, context_len=256, slots=4, activations="f32")
    load = structs.replace(load, kv_dtype="f32")
    model = load_model(load, architectures, lambda _name: device, lambda _: None)
    core = model.core
    try:
        return together(core)
    finally:
        model.close()


def together(core: EngineCore, step: Callable[[], Output] | None = None) -> list[list[int]]:
    """Return the tokens of sequences with and without filters; ``step`` runs a step of the core."""
    step = step or core.step
    kinds = (
        SamplingParams(seed=0, temperature=0.0),
        SamplingParams(seed=1, temperature=1.0),
        SamplingParams(seed=2, temperature=0.8, top_p=0.9),
        SamplingParams(seed=3, temperature=1.5, top_k=20, repetition_penalty=1.2),
    )
    for number, sampling in enumerate(kinds):
        prompt = tuple(range(40 + number, 80 + number))
        stop = StopParams(max_tokens=24, min_tokens=24)
        core.submit(Submit(request_id=number, prompt=prompt, sampling=sampling, stop=stop))
    tokens: list[list[int]] = [[] for _ in kinds]
    while core.busy:
        for output in step().tokens:
            tokens[output.request_id].append(output.token)
    return tokens
