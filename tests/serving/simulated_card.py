"""A plugin with a card that computes like the reference device, with a memory and a speed of its own."""

from __future__ import annotations

import os

import pytest

from tests.plugin_sites import Site

SOURCE = """
import time
import msgspec
from llmd.api import Backend, hookimpl
from llmd.builtin.reference.device import ReferenceDevice, ReferenceWeights, describe
from llmd.models.program_bytes import resident_bytes

LLMD_API = 2
MEMORY = {memory_bytes}
STEP_S = {step_s}
LEAK = {leak_bytes}
SPILL = {spilled_bytes}
INFO = msgspec.structs.replace(
    describe(), name="card:0", kind="card", score=90, memory_bytes=MEMORY, memory_id="card 0", features=()
)


class Card(ReferenceDevice):
    def __init__(self):
        self.info, self.taken = INFO, 0

    def free_bytes(self):
        return MEMORY - self.taken

    def spilled_bytes(self):
        return SPILL

    def load(self, program, tensors, progress, have=()):
        weights = Weights(program, super().load(program, tensors, progress)._weights)
        weights.device = self
        self.taken += resident_bytes(program) + LEAK
        return weights


class Weights(ReferenceWeights):
    def stage(self, blocks, limits):
        stage = super().stage(blocks, limits)
        self.device.taken += self.step_bytes(limits)
        self.device.taken += sum(self.kv_bytes(group, limits.kv_dtype) * n for group, n in blocks.items())
        submit = stage.submit

        def slow(*arguments):
            time.sleep(STEP_S)
            return submit(*arguments)

        stage.submit = slow
        return stage


@hookimpl
def llmd_backends():
    return [Backend("card", probe=lambda: [INFO], open=lambda name, options: Card())]
"""


def install_card(
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    *,
    memory_bytes: int = 1 << 30,
    step_s: float = 0.0,
    leak_bytes: int = 0,
    spilled_bytes: int = 0,
) -> None:
    """Install a backend with the device ``card:0``, also for the engines of this process.

    Each of its steps takes ``step_s`` seconds more, and each load ``leak_bytes`` more than planned.
    Its driver says that it keeps ``spilled_bytes`` in main memory.
    """
    source = SOURCE.format(
        memory_bytes=memory_bytes, step_s=step_s, leak_bytes=leak_bytes, spilled_bytes=spilled_bytes
    )
    site.write("card", source)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site.folder), os.environ.get("PYTHONPATH", "")]))
