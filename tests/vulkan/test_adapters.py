"""LoRA adapters on the device: tiny models answer as transformers does with the adapters merged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from llmd.api import Device, DeviceOptions
from llmd.builtin.reference.device import ReferenceDevice
from llmd_backend_vulkan.device import VulkanDevice
from llmd_backend_vulkan.vulkan import PhysicalDevice
from tests.golden.adapters import ADAPTERS, EIGHT, AdapterCase
from tests.golden.engines import Architectures
from tests.golden.expected import read_expected
from tests.golden.models.tiny import TinyModel
from tests.golden.test_adapters import BOUND, Engines, answers, answers_with_eight, each_case, error_of

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def engines(
    physical: PhysicalDevice,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    tmp_path: Path,
) -> Engines:
    def open_device(_name: str) -> Device:
        return VulkanDevice(physical, DeviceOptions())

    return Engines(checkpoint, architectures, open_device, tmp_path)


@each_case
def test_answers_are_those_of_merged_weights(case: AdapterCase, engines: Engines) -> None:
    with engines.of(case.base, case, activations="f32") as core:
        assert error_of(core, case) <= BOUND
        assert answers(core, case.base, case.name) == [read_expected(case.name).tokens.tolist()]


def test_a_batch_has_answers_with_and_without_an_adapter(engines: Engines) -> None:
    case = ADAPTERS[0]
    with engines.of(case.base, case, activations="f32") as core:
        found = answers(core, case.base, "", case.name, "")
    plain, adapted = (read_expected(name).tokens.tolist() for name in (case.model, case.name))
    assert found == [plain, adapted, plain]


def test_eight_adapters_of_a_mixture_have_the_answers_of_the_reference_in_one_batch(
    engines: Engines, checkpoint: Callable[[TinyModel], Path], architectures: Architectures, tmp_path: Path
) -> None:
    reference = Engines(checkpoint, architectures, lambda _name: ReferenceDevice(), tmp_path / "reference")
    found = []
    for loads in (engines, reference):
        with loads.of(EIGHT[0].base, *EIGHT, slots=1 + len(EIGHT), activations="f32") as core:
            found.append(answers_with_eight(core))
    assert found[0] == found[1]
