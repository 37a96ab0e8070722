"""The weights of a program on the CPU: plain ones stay mapped, int8 ones are packed for the kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from llmd.api import KVDtype, Program, Progress, StageLimits, TensorSource, Weight, WeightData, encode
from llmd.api.errors import MemoryBudgetError
from llmd.api.machine import available_bytes
from llmd_backend_cpu import _ext
from llmd_backend_cpu.stage import CpuStage

_ITEM_SIZES = {"f32": 4, "f16": 2, "bf16": 2, "q8": 1}


def load_parts(device: _ext.Device, program: Program, tensors: TensorSource, progress: Progress) -> CpuParts:
    """Read every weight. Raises `MemoryBudgetError` before anything is read where packed weights cannot fit."""
    sizes = [_num_bytes(weight) for weight in program.weights]
    packed = sum(n for n, weight in zip(sizes, program.weights, strict=True) if weight.format == "q8")
    if packed > available_bytes():
        raise MemoryBudgetError(
            f"int8 weights of {packed} bytes do not fit the {available_bytes()} bytes that are free",
            hint="serve a smaller model, or move layers to another device with --split",
        )
    native = _make_native(device, program)
    done = 0
    for size, weight in zip(sizes, program.weights, strict=True):
        _add(native, tensors.read(weight))
        done += size
        progress(done, sum(sizes))
    return CpuParts(program, native)


class CpuParts:
    """See `llmd.api.LoadedParts`."""

    def __init__(self, program: Program, native: _ext.Parts) -> None:
        self._program = program
        self._native: _ext.Parts | None = native

    def kv_bytes(self, group: int, kv_dtype: KVDtype) -> int:
        return self._loaded().kv_block_bytes(group, kv_dtype)

    def free_bytes(self) -> int:
        return available_bytes()

    def stage(self, blocks: Mapping[int, int], limits: StageLimits) -> CpuStage:
        needed = sum(self.kv_bytes(group, limits.kv_dtype) * count for group, count in blocks.items())
        if needed > self.free_bytes():
            raise MemoryBudgetError(
                f"KV pools of {needed} bytes do not fit the {self.free_bytes()} bytes that are free",
                hint="lower --kv-memory, --slots or --max-ctx",
            )
        try:
            return CpuStage(self._program, self._loaded(), blocks, limits)
        except MemoryError as error:
            raise MemoryBudgetError(
                f"the system refused memory for KV pools of {needed} bytes and the step buffers",
                hint="lower --kv-memory, --slots or --max-ctx",
            ) from error

    def read_factors(self) -> int:
        """Read what steps multiply by once, as fast as the machine can, and return the bytes: the bound of decoding."""
        return self._loaded().read_factors()

    def close(self) -> None:
        self._native = None

    def _loaded(self) -> _ext.Parts:
        if self._native is None:
            raise ValueError("these parts are closed")
        return self._native


def _make_native(device: _ext.Device, program: Program) -> _ext.Parts:
    encoded = encode(program)
    return _ext.Parts(
        device,
        hidden_size=program.hidden_size,
        vocab_size=program.vocab_size,
        context_len=program.context_len,
        hidden_in=-1 if program.hidden_in is None else program.hidden_in,
        hidden_out=-1 if program.hidden_out is None else program.hidden_out,
        slot_widths=list(program.slot_widths),
        groups=[(len(g.layers), g.kv_heads, g.head_dim, g.window or 0) for g in program.groups],
        ropes=[(list(table.inv_freq), table.factor) for table in program.ropes],
        records=encoded.records.tolist(),
        floats=encoded.floats.tolist(),
    )


def _add(native: _ext.Parts, data: WeightData) -> None:
    """Hand a weight over: packed, widened, or read where it lies."""
    if data.scales is not None:
        native.add_int8(data.integers(), data.scales.coarse.view(np.uint16), data.group_size)
        return
    add = native.add_vector if data.data.ndim == 1 else native.add_matrix
    if data.format == "f32":
        add(data.format, data.data.view(np.float32))
    else:
        add(data.format, data.data.view(np.uint16))


def _num_bytes(weight: Weight) -> int:
    return math.prod(weight.ref.view_shape) * _ITEM_SIZES[weight.format]
