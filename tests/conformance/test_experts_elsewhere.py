"""Experts on the processor and everything else on a card: the tokens of one device."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from llmd.api.device import HOST_MEMORY, DeviceInfo
from llmd.api.messages import Load
from llmd.engine.composition import make_host
from llmd.engine.loading import LoadedModel, load_model
from llmd_backend_cpu.device import CpuDevice
from tests.daemon.engine.placement.tiny_candidates import QUICK, SLOW
from tests.golden.checkpoint import write_checkpoint
from tests.golden.models.catalog import tiny_model
from tests.serving.cores import ids, run, submit
from tests.serving.machine import machine_of

REQUESTS = tuple(submit(request, 7 * request, max_tokens=10) for request in (1, 2, 3))


class Card(CpuDevice):
    """A second CPU device that has a memory of its own."""

    def __init__(self, info: DeviceInfo) -> None:
        super().__init__(threads=1)
        self.info = info


def infos(card_bytes: int) -> list[DeviceInfo]:
    cpu = CpuDevice(threads=1).info
    card = structs.replace(cpu, name="card", memory_id="card", memory_bytes=card_bytes, score=60)
    return [card, structs.replace(cpu, memory_bytes=1 << 30, memory_id=HOST_MEMORY)]


def loaded(directory: Path, probes: Path, card_bytes: int = 1 << 30, **settings: Any) -> LoadedModel:
    devices = infos(card_bytes)
    card, _ = devices
    return load_model(
        Load(str(directory), slots=3, chunk_len=16, context_len=128, **settings),
        make_host(probes).architectures(),
        lambda name: Card(card) if name == "card" else CpuDevice(threads=1),
        lambda _progress: None,
        devices=machine_of(devices, {"card": QUICK, "cpu": SLOW}),
    )


@pytest.mark.parametrize("name", ["qwen2-moe", "qwen3-next"])
def test_tokens_are_those_of_one_device(name: str, tmp_path: Path) -> None:
    """Both have shared experts, and one has a layer without experts."""
    directory = write_checkpoint(tiny_model(name), tmp_path / "m")
    with closing(loaded(directory, tmp_path, device="cpu")) as model:
        expected = {number: ids(tokens) for number, tokens in run(model.core, *REQUESTS).items()}
    with closing(loaded(directory, tmp_path, cpu_experts=2)) as model:
        stages = model.loaded.stages
        found = {number: ids(tokens) for number, tokens in run(model.core, *REQUESTS).items()}
    elsewhere = [one for stage in stages if stage.device == "cpu" for one in stage.part_names]
    assert len([one for one in elsewhere if one.endswith(".ffn")]) == 2
    assert not [one for one in elsewhere if one.endswith(".mixer") or one.isdigit()]
    assert {stage.device for stage in stages} == {"card", "cpu"}
    assert found == expected
