"""A model that is divided between the reference backend and Vulkan in a process of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs

from llmd.api import DeviceLostError
from llmd.api.device import Device
from llmd.api.messages import Load, StageSpec
from llmd.api.results import Output
from llmd.builtin.guide import guide_directory
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.loading import LoadedModel, load_model
from llmd.host.devices import DeviceState
from llmd.host.names import PluginName
from llmd.remote.device import RemoteDevice
from llmd_backend_vulkan.device import describe
from llmd_backend_vulkan.vulkan import PhysicalDevice
from tests.golden.adapters import ADAPTERS
from tests.golden.engines import Architectures
from tests.golden.test_adapters import BOUND, Engines, error_of
from tests.golden.test_gguf_adapters import gguf_writer
from tests.serving.apart import apart, process_of
from tests.serving.machine import machine_of
from tests.vulkan.test_models import said_by_the_guide, together

pytestmark = pytest.mark.timeout(120)
PLUGIN = PluginName("vulkan", "llmd_backend_vulkan.plugin", "llmd-backend-vulkan", "0.1.0")


@pytest.fixture
def card(physical: PhysicalDevice) -> Iterator[RemoteDevice]:
    opened = apart(DeviceState(describe(physical), "vulkan", PLUGIN, ok=True))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def expected(architectures: Architectures) -> list[list[int]]:
    return said_by_the_guide(ReferenceDevice(), architectures)


def divided(card: Device, architectures: Architectures) -> LoadedModel:
    """Load the guide with some of its middle layers on the card."""
    devices: dict[str, Device] = {"reference": ReferenceDevice(), card.info.name: card}
    stages = (
        StageSpec("reference", "0", "1"),
        StageSpec(card.info.name, "2", "4"),
        StageSpec("reference", "5", "6"),
    )
    load = Load(
        str(guide_directory()), device="reference", stages=stages, context_len=256, slots=4, activations="f32"
    )
    load = structs.replace(load, kv_dtype="f32")
    left = machine_of([device.info for device in devices.values()])
    return load_model(load, architectures, devices.__getitem__, lambda _: None, devices=left)


def test_a_divided_model_says_what_it_says_on_the_reference_backend(
    card: RemoteDevice, architectures: Architectures, expected: list[list[int]]
) -> None:
    with closing(divided(card, architectures)) as model:
        assert [stage.device for stage in model.loaded.stages] == ["reference", card.info.name, "reference"]
        assert together(model.core) == expected
        _, apart, _ = model.core.report().kernels
        assert apart.names, "the process says which kernels it uses"


def test_the_process_of_a_device_reads_the_adapters_of_a_gguf_file(
    card: RemoteDevice, architectures: Architectures, tmp_path: Path
) -> None:
    case = ADAPTERS[0]
    engines = Engines(gguf_writer(tmp_path), architectures, lambda _name: card, tmp_path)
    with engines.of(case.base, case, device=card.info.name, activations="f32") as core:
        assert error_of(core, case) <= BOUND


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_process_that_dies_under_load_loses_nothing(
    card: RemoteDevice, architectures: Architectures, expected: list[list[int]], number: int
) -> None:
    with closing(divided(card, architectures)) as model:
        steps, lost = 0, list[str]()

        def step() -> Output:
            nonlocal steps
            steps += 1
            if steps == 8:
                os.kill(process_of(card), number)
            try:
                return model.core.step()
            except DeviceLostError as error:
                lost.extend(error.devices)
                replanned, failed = model.recover(error)
                assert not failed
                assert {stage.device for stage in replanned.stages} == {"reference"}
                return Output(())

        assert together(model.core, step) == expected
        assert lost == [card.info.name]
