"""The CPU device: a pool of threads and the kernels of one instruction set."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Sequence

from llmd.api import (
    INTEGER_FORMATS,
    KV_DTYPES,
    PLAIN_FORMATS,
    SCALED_FORMATS,
    ActivationDtype,
    DeviceInfo,
    LoadedWeights,
    Program,
    Progress,
    Refusal,
    TensorSource,
)
from llmd.api.errors import DeviceError
from llmd.api.features import (
    ADAPTERS,
    ATTENTION_SUMS,
    CHOSEN_POSITIONS,
    COLUMNS,
    EXPERT_CACHE,
    GIVEN_EXPERTS,
    LATENT,
    LIMITS,
    OWN_WEIGHTS,
    SHARED_KEYS,
    SINKS,
    SPANS,
    STATE,
    STRIDES,
)
from llmd.api.machine import available_bytes, cpu_name
from llmd.api.ops import FACTOR_OPS, OP_KINDS, TABLE_OPS
from llmd_backend_cpu import _ext, placement
from llmd_backend_cpu.bandwidth import read_rate
from llmd_backend_cpu.quantizer import NativeQuantizer
from llmd_backend_cpu.weights import CpuWeights, load_weights

_FORMATS = (*PLAIN_FORMATS, *SCALED_FORMATS, *INTEGER_FORMATS)
_OPS = tuple(kind for kind in OP_KINDS if kind != "recurrence")
_ACTIVATIONS: tuple[ActivationDtype, ...] = ("int8", "f32")
log = logging.getLogger(__name__)


def describe(isa: str | None = None, threads: int | None = None) -> DeviceInfo:
    """Describe the device of this machine."""
    isa = isa or _ext.available_isas()[0]
    return DeviceInfo(
        name="cpu",
        kind="cpu",
        score=50,
        memory_bytes=available_bytes(),
        formats=_FORMATS,
        kv_dtypes=KV_DTYPES,
        ops=_OPS,
        row_exact=True,
        activations=_ACTIVATIONS,
        integer_ops=(*FACTOR_OPS, *TABLE_OPS),
        uses_threads=True,
        kv_layout=f"cpu, {isa}, {_ext.version()}",
        description=f"{cpu_name()}, {isa}, {placement.description(threads)}",
        features=(
            ADAPTERS,
            ATTENTION_SUMS,
            CHOSEN_POSITIONS,
            COLUMNS,
            EXPERT_CACHE,
            GIVEN_EXPERTS,
            LATENT,
            LIMITS,
            OWN_WEIGHTS,
            SHARED_KEYS,
            SINKS,
            SPANS,
            STATE,
            STRIDES,
        ),
    )


class CpuDevice:
    """See `llmd.api.Device`. By default, ``isa`` and ``threads`` are the best choice for this machine."""

    def __init__(self, isa: str | None = None, threads: int | None = None) -> None:
        isas = _ext.available_isas()
        if isa is not None and isa not in isas:
            raise DeviceError(
                f"this machine cannot run the instruction set {isa!r}",
                hint=f"choose one of {', '.join(isas)}",
            )
        isa = isa or isas[0]
        placed = placement.chosen_placement(isa) if threads is None else placement.Placement(threads)
        self.info = describe(isa, placed.threads)
        self._native = _start_threads(isa, placed)
        self._short: weakref.WeakSet[CpuWeights] = weakref.WeakSet()
        self._caching: weakref.WeakSet[CpuWeights] = weakref.WeakSet()
        self.quantizer = NativeQuantizer()
        where = ", ".join(map(str, placed.processors)) or "any"
        log.info("cpu_opened", extra={"isa": isa, "threads": placed.threads, "processors": where})

    def check(self, program: Program) -> list[Refusal]:
        unknown = {weight.format for weight in program.weights} - set(_FORMATS)
        return [
            Refusal(f"format {name}", f"the CPU backend has {', '.join(_FORMATS)}")
            for name in sorted(unknown)
        ]

    def read_rate(self, budget_s: float) -> float:
        return read_rate(self._native, budget_s)

    def free_bytes(self) -> int:
        # Pages of weights that were mapped because memory is short count as used, but the system drops them.
        left = [weights.left_bytes for weights in self._short if weights.left_bytes is not None]
        # Cached experts have memory that steps will take.
        unfilled = sum(weights.unfilled_bytes for weights in self._caching)
        return max(0, min(left, default=available_bytes()) - unfilled)

    def load(
        self,
        program: Program,
        tensors: TensorSource,
        progress: Progress,
        have: Sequence[LoadedWeights] = (),
    ) -> CpuWeights:
        weights = load_weights(self._native, program, tensors, progress)
        if weights.left_bytes is not None:
            self._short.add(weights)
        if program.expert_bytes is not None:
            self._caching.add(weights)
        return weights

    def close(self) -> None:
        """Do nothing: the threads end with the last object that uses them."""


def _start_threads(isa: str, placed: placement.Placement) -> _ext.Device:
    try:
        return _ext.Device(isa, placed.threads, placement.spin_us(placed.threads), list(placed.processors))
    except RuntimeError as error:
        raise DeviceError(
            f"the system refused to start {placed.threads} threads: {error}",
            hint="start fewer with --threads",
        ) from error
