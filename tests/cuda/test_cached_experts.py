"""A mixture for which a card has no room runs on it: llmd chooses what it keeps, and the tokens are right."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec
import pytest

from llmd.api import Device, DeviceOptions
from llmd.api.device import HOST_MEMORY
from llmd.api.errors import MemoryBudgetError
from llmd.api.messages import Load
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.loading import LoadedModel, load_model
from llmd.engine.placement.candidates import MachineDevices
from llmd_backend_cuda.device import CudaDevice
from tests.cuda.simulated import CARD, NEEDS_COMPILER, SimulatedCard
from tests.daemon.engine.placement.tiny_candidates import QUICK
from tests.golden.checkpoint import write_checkpoint
from tests.golden.models.mixtures import qwen3_moe
from tests.golden.models.tiny import TinyModel
from tests.serving.cores import ids, run, submit
from tests.serving.machine import machine_of

pytestmark = NEEDS_COMPILER

ARCHITECTURES = {name: one for one in llmd_architectures() for name in one.names}
FAMILY = partial(qwen3_moe, hidden_size=128, moe_intermediate_size=256, num_experts=16, vocab_size=131)
CARD_BYTES = 4_500_000
"""Two thirds of what the weights take."""
FIXED_BYTES = 500_000
"""Of step buffers, whatever the size of the model: the planner does not count them."""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(TinyModel("mixture", FAMILY(), dtype="f16"), tmp_path_factory.mktemp("mixture"))


def card() -> CudaDevice:
    properties = msgspec.structs.replace(CARD, memory_bytes=CARD_BYTES)
    runtime = SimulatedCard(num_processors=1, memory_bytes=CARD_BYTES + FIXED_BYTES, deferred=True)
    return CudaDevice(properties, DeviceOptions(), runtime)


def machine(device: Device) -> MachineDevices:
    """Return a machine with a card and room in main memory."""
    rates = msgspec.structs.replace(QUICK, stream_bytes_per_s=1e9)
    return machine_of([device.info], {device.info.name: rates}, room=room)


def room(memory_id: str, memory_bytes: int) -> int:
    return 1 << 30 if memory_id == HOST_MEMORY else memory_bytes


def load(directory: Path, device: Device, devices: MachineDevices | None = None) -> LoadedModel:
    name = device.info.name
    options = Load(str(directory), name, context_len=64, slots=1, chunk_len=8, activations="f16")
    return load_model(options, ARCHITECTURES, {name: device}.__getitem__, lambda _: None, devices=devices)


def tokens(model: LoadedModel) -> dict[int, list[int]]:
    answers = run(model.core, submit(1, 5, 12), submit(2, 19, 8))
    return {number: ids(outputs) for number, outputs in answers.items()}


def test_a_mixture_that_is_larger_than_the_card_has_the_tokens_of_the_reference(directory: Path) -> None:
    device = card()
    model, whole = load(directory, device, machine(device)), load(directory, ReferenceDevice())
    (stage,), (other,) = model.loaded.stages, whole.loaded.stages
    assert other.weight_bytes > 1.4 * CARD_BYTES
    assert stage.weight_bytes + stage.absent_bytes == other.weight_bytes
    assert stage.main_memory_expert_bytes > stage.absent_bytes > 0
    assert stage.size_bytes <= CARD_BYTES + FIXED_BYTES
    assert any("steps read the others from main memory" in notice for notice in model.loaded.notices)
    assert tokens(model) == tokens(whole)
    use = model.report().expert_cache
    assert use is not None
    assert min(use.hits, use.misses) > 0
    model.close()
    whole.close()


def test_without_a_share_it_does_not_fit(directory: Path) -> None:
    with pytest.raises(MemoryBudgetError):
        load(directory, card())
