"""The reference device."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from llmd.api.byte_size import format_bytes
from llmd.api.device import DeviceInfo, LoadedWeights, Progress, Refusal, StageLimits
from llmd.api.errors import MemoryBudgetError
from llmd.api.features import COMPUTED
from llmd.api.integer_formats import INTEGER_FORMATS
from llmd.api.kv import KV_DTYPES, KVDtype, kv_block_bytes
from llmd.api.machine import available_bytes
from llmd.api.ops import FACTOR_OPS, OP_KINDS, TABLE_OPS
from llmd.api.program import ACTIVATION_DTYPES, PRECISIONS, ActivationDtype, Precision, Program
from llmd.api.step_buffers import step_buffer_bytes
from llmd.api.tensors import PLAIN_FORMATS, SCALED_FORMATS, GroupScales, TensorSource, Weight, WeightData
from llmd.builtin.reference.executor import Weights
from llmd.builtin.reference.stage import ReferenceStage
from llmd.builtin.reference.weights import Float64, Matrix, make_matrices, to_float64


def probe() -> list[DeviceInfo]:
    """Return the reference device, which is always available; every measured device is preferred to it."""
    return [describe()]


def describe() -> DeviceInfo:
    return DeviceInfo(
        name="reference",
        kind="reference",
        score=1,
        memory_bytes=available_bytes(),
        formats=(*PLAIN_FORMATS, *SCALED_FORMATS, *INTEGER_FORMATS),
        kv_dtypes=KV_DTYPES,
        ops=OP_KINDS,
        row_exact=True,
        description=f"NumPy {np.__version__}, float64, one row at a time",
        kv_layout=f"reference, NumPy {np.__version__}",
        activations=ACTIVATION_DTYPES,
        precisions=PRECISIONS,
        integer_ops=(*FACTOR_OPS, *TABLE_OPS),
        # All weights are in main memory, so that streaming them is nothing new.
        features=COMPUTED,
    )


class ReferenceDevice:
    """See `llmd.api.Device`."""

    def __init__(self) -> None:
        self.info = describe()

    def check(self, program: Program) -> list[Refusal]:
        unknown = {weight.format for weight in program.weights} - set(self.info.formats)
        return [
            Refusal(f"format {name}", "the reference backend has no such format") for name in sorted(unknown)
        ]

    def read_rate(self, budget_s: float) -> float:
        values = np.ones(4 << 20, np.float64)
        return values.nbytes * _rate(values.sum, budget_s)

    def free_bytes(self) -> int:
        return available_bytes()

    def load(
        self,
        program: Program,
        tensors: TensorSource,
        progress: Progress,
        have: Sequence[LoadedWeights] = (),
    ) -> ReferenceWeights:
        return ReferenceWeights(program, _read_weights(program, tensors, progress, _known(have)))

    def close(self) -> None:
        """Do nothing: the device holds no resources."""


class ReferenceWeights:
    """See `llmd.api.LoadedWeights`."""

    def __init__(self, program: Program, weights: Weights) -> None:
        self._program = program
        self._weights = weights

    def kv_bytes(self, group: int, kv_dtype: KVDtype) -> int:
        return kv_block_bytes(self._program.groups[group], kv_dtype)

    def step_bytes(self, limits: StageLimits) -> int:
        return step_buffer_bytes(self._program, limits)

    def stage(self, blocks: Mapping[int, int], limits: StageLimits) -> ReferenceStage:
        needed = sum(self.kv_bytes(group, limits.kv_dtype) * count for group, count in blocks.items())
        if needed > (free := available_bytes()):
            raise MemoryBudgetError(
                f"KV pools of {format_bytes(needed)} do not fit the {format_bytes(free)} that are free",
                hint="lower --kv-memory, --slots or --max-ctx",
            )
        return ReferenceStage(self._program, self._weights, blocks, limits)

    def known(self) -> _Known:
        """Return the weights for other programs."""
        weights, arithmetic = self._program.weights, (self._program.activations, self._program.precision)
        return _Known(
            {(weights[index], *arithmetic): matrix for index, matrix in self._weights.matrices.items()},
            {weights[index]: array for index, array in self._weights.arrays.items()},
        )

    def close(self) -> None:
        """Do nothing: the weights are freed with the last reference to them."""


class _Known(msgspec.Struct):
    """Prepared weights. Matrices depend on how the rows that they multiply are rounded."""

    matrices: dict[tuple[Weight, ActivationDtype, Precision], tuple[Matrix, ...]]
    arrays: dict[Weight, Float64]


def _known(have: Sequence[LoadedWeights]) -> _Known:
    known = _Known({}, {})
    for one in have:
        assert isinstance(one, ReferenceWeights), "a device gets only weights that it loaded itself"
        more = one.known()
        known.matrices |= more.matrices
        known.arrays |= more.arrays
    return known


def _read_weights(program: Program, tensors: TensorSource, progress: Progress, known: _Known) -> Weights:
    """Read every weight that is not known. Factors of products become matrices; other uses get arrays."""
    uses, arithmetic = _uses(program), (program.activations, program.precision)
    done, total = 0, sum(weight.num_bytes for weight in program.weights)
    for index, weight in enumerate(program.weights):
        key = weight, *arithmetic
        lacks_matrix = (index, True) in uses and key not in known.matrices
        lacks_array = (index, False) in uses and weight not in known.arrays
        if lacks_matrix or lacks_array:
            data = tensors.read(weight)
            if lacks_matrix:
                known.matrices[key] = make_matrices(data, weight.ref, *arithmetic)
            if lacks_array:
                known.arrays[weight] = to_float64(data)
        done += weight.num_bytes
        progress(done, total)
    of = program.weights
    return Weights(
        {index: known.matrices[of[index], *arithmetic] for index, is_factor in uses if is_factor},
        {index: known.arrays[of[index]] for index, is_factor in uses if not is_factor},
    )


def _uses(program: Program) -> set[tuple[int, bool]]:
    """Return (weight index, whether it is the factor of a matrix product) for every use."""
    uses: set[tuple[int, bool]] = set()
    for slotted in program.ops:
        for place, index in enumerate(slotted.weights):
            if index is not None:
                uses.add((index, slotted.op.kind in FACTOR_OPS and place % 2 == 0))
    return uses


def _ones(name: str, size: int) -> WeightData:
    """Return a square weight of ones in the named format."""
    if name == "q8":
        codes = np.full((size, size), 129, np.uint8)
        return WeightData(name, codes, GroupScales(np.ones((size, size // 64), np.float16)), group_size=64)
    if name == "bf16":
        return WeightData(name, np.full((size, size), 0x3F80, np.uint16))
    return WeightData(name, np.ones((size, size), np.float16 if name == "f16" else np.float32))


def _rate(run: Callable[[], object], budget_s: float) -> float:
    """Return runs per second, measured for about ``budget_s`` seconds."""
    start = time.perf_counter()
    runs = 0
    while (elapsed := time.perf_counter() - start) < budget_s or not runs:
        run()
        runs += 1
    return runs / elapsed if elapsed else 0.0
