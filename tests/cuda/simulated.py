"""A card that the host simulates, and the small model of the tests on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import (
    PLAIN_FORMATS,
    DeviceOptions,
    Format,
    ModelPlan,
    Program,
    Step,
    TensorRef,
    TensorSource,
)
from llmd.api.ops import FACTOR_OPS
from llmd.models.lowering import lower
from llmd.testing.sources import RandomSource
from llmd_backend_cuda.device import CudaDevice
from llmd_backend_cuda.probe import CardProperties
from llmd_backend_cuda.programs import PATTERNS
from llmd_backend_cuda.runtime import Event, Graph, Kernel, KernelSpec, Launch, Memory, Runtime, Timestamp
from llmd_backend_cuda.weights import CudaWeights, load_weights
from tests.cuda.simt.build import compiler
from tests.cuda.simt.runtime import SimtRuntime

NEEDS_COMPILER = [pytest.mark.skipif(compiler() is None, reason="needs g++"), pytest.mark.timeout(300)]
"""Marks of tests that run kernels: many of them are compiled at first."""

CARD = CardProperties(
    index=0,
    name="simulated",
    uuid="GPU-0",
    pci="0000:00:00.0",
    memory_bytes=1 << 34,
    capability=(9, 0),
    num_processors=4,
    shared_bytes=227 << 10,
    l2_bytes=1 << 20,
)


class SimulatedCard(SimtRuntime):
    """A runtime that notes what it does. All of them share their compiled kernels."""

    _compiled: ClassVar[dict[KernelSpec, Kernel]] = {}

    def __init__(
        self,
        *,
        num_processors: int = 4,
        memory_bytes: int = 4 << 30,
        deferred: bool = False,
        name: str = "simulated",
    ) -> None:
        super().__init__(
            num_processors=num_processors, memory_bytes=memory_bytes, deferred=deferred, name=name
        )
        self.launched: list[str] = []
        """Names of the kernels that were launched, but for those of graphs."""
        self.asked: list[KernelSpec] = []
        """The kernels that were asked for."""
        self.num_graphs = 0
        """Graphs that were captured."""

    def kernel(self, spec: KernelSpec) -> Kernel:
        self.asked.append(spec)
        if spec not in self._compiled:
            self._compiled[spec] = super().kernel(spec)
        return self._compiled[spec]

    def launch(self, launch: Launch) -> None:
        if not self.capturing:
            self.launched.append(launch.kernel.spec.name)
        super().launch(launch)

    def capture(self, run: Callable[[], None]) -> Graph:
        self.num_graphs += 1
        return super().capture(run)


class HangingCard(SimulatedCard):
    """A card that, once it hangs, reaches no point of its stream any more."""

    hangs = False

    def record(self) -> Event:
        return _Point(self, super().record())

    def timestamp(self) -> Timestamp:
        return _TimedPoint(self, super().timestamp())

    def wait_for(self, event: Event) -> None:
        """A card that waits for one that hangs also hangs."""
        if isinstance(event, _Point):
            self.hangs |= event.card.hangs
            event = event.event
        super().wait_for(event)


class _Point:
    def __init__(self, card: HangingCard, event: Event) -> None:
        self.card = card
        self.event = event

    def wait(self, timeout_s: float) -> bool:
        return not self.card.hangs and self.event.wait(timeout_s)


class _TimedPoint(_Point):
    def __init__(self, card: HangingCard, event: Timestamp) -> None:
        super().__init__(card, event)
        self._timed = event

    def seconds_after(self, earlier: Timestamp) -> float:
        assert isinstance(earlier, _TimedPoint)
        return self._timed.seconds_after(earlier._timed)


def open_device(runtime: Runtime | None = None, index: int = 0) -> CudaDevice:
    """Return a simulated card as a device."""
    card = msgspec.structs.replace(CARD, index=index, uuid=f"GPU-{index}", pci=f"0000:{index:02x}:00.0")
    return CudaDevice(card, DeviceOptions(), runtime or SimulatedCard(name=card.device))


def lowered(
    plan: ModelPlan,
    first: int = 0,
    last: int | None = None,
    *,
    fmt: Format = "f16",
    taps: Sequence[int] = (),
    streamed: Iterable[int] = (),
) -> Program:
    """Return some parts as the backend gets them; matrices have a format, vectors are float32."""

    def format_of(kind: str, ref: TensorRef) -> Format:
        is_plain = len(ref.shape) == 1 or (fmt not in PLAIN_FORMATS and kind not in FACTOR_OPS)
        return "f32" if is_plain else fmt

    end = len(plan.parts) if last is None else last
    return lower(
        plan,
        first,
        end,
        format_of=format_of,
        patterns=PATTERNS,
        activations="f16",
        precision="f16",
        taps=taps,
        streamed=streamed,
    )


def load(
    runtime: Runtime,
    program: Program,
    source: TensorSource | None = None,
    have: Sequence[CudaWeights] = (),
) -> CudaWeights:
    """Load weights, by default random ones."""
    return load_weights(runtime, program, source or RandomSource(), lambda _done, _total: None, have)


def step_of(
    chunks: Sequence[tuple[int, int]], *tables: Sequence[Sequence[int]], vocab: int = 131, seed: int = 0
) -> Step:
    """Return a step with random tokens of sequences, of which ``chunks`` are (first position, rows).

    ``tables`` are the blocks, or slots, of each KV group.
    """
    rows = sum(count for _, count in chunks)
    return Step(
        token_ids=np.random.default_rng(seed).integers(0, vocab, rows, np.int32),
        positions=np.concatenate([np.arange(first, first + n, dtype=np.int32) for first, n in chunks]),
        row_offsets=np.cumsum([0, *(n for _, n in chunks)], dtype=np.int32),
        block_tables=tuple(np.array(table, np.int32).reshape(len(chunks), -1) for table in tables),
        copies=np.empty((0, 3), np.int32),
    )


def contents(
    runtime: Runtime, memory: Memory, dtype: type[np.generic], first: int = 0, count: int | None = None
) -> NDArray[np.generic]:
    """Return elements of memory."""
    size = np.dtype(dtype).itemsize
    array = np.empty(memory.num_bytes // size - first if count is None else count, dtype)
    runtime.download(array, memory, first * size)
    return array
