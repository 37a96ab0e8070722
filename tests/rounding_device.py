"""A device that rounds as it claims, but at other places than the reference, with sums in another order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from llmd.api import (
    INTEGER_FORMATS,
    KVDtype,
    LoadedWeights,
    Precision,
    Program,
    Progress,
    StageLimits,
    TensorSource,
)
from llmd.api.ops import Attention
from llmd.api.program import SlottedOp
from llmd.api.step import Float32
from llmd.builtin.reference import numerics
from llmd.builtin.reference.device import ReferenceDevice, ReferenceWeights
from llmd.builtin.reference.executor import Execution, Weights
from llmd.builtin.reference.rounding import round_to
from llmd.builtin.reference.stage import ReferenceStage
from llmd.builtin.reference.weights import Float64, Matrix, make_matrices, to_float64

Fault = Literal["plain linear", "integer linear", "head", "attention", "encoder_attention", "scale", "row"]
_SPAN = 16


class RoundingDevice(ReferenceDevice):
    """Computes as tensor cores do: it also rounds weights, keys and values, and sums in float32.

    With a ``fault`` it leaves one product out of the sums of these ops; ``scale``: the scale of attention is
    10 % too large; ``row``: the last row of a linear op is that of the row before.
    """

    def __init__(
        self,
        precision: Precision = "f16",
        *,
        kv_dtypes: tuple[KVDtype, ...] = ("f16", "int8"),
        int8: bool = False,
        fault: Fault | None = None,
    ) -> None:
        super().__init__()
        self.info = msgspec.structs.replace(
            self.info,
            name="rounding",
            kv_dtypes=kv_dtypes,
            activations=("int8",) if int8 else (precision,),
            precisions=(precision,),
            row_exact=False,
        )
        self._fault = fault

    def load(
        self,
        program: Program,
        tensors: TensorSource,
        progress: Progress,
        have: Sequence[LoadedWeights] = (),
    ) -> ReferenceWeights:
        ops = program.ops
        heads = {slotted.weights[0] for slotted in ops if slotted.op.kind == "head"}
        matrices: dict[int, tuple[Matrix, ...]] = {}
        arrays: dict[int, Float64] = {}
        for index, weight in enumerate(program.weights):
            data = tensors.read(weight)
            arrays[index] = to_float64(data)
            is_integer = weight.format in INTEGER_FORMATS
            if is_integer and program.activations == "int8":
                matrices[index] = make_matrices(data, weight.ref)
            elif weight.ref.is_matrix:
                use = "head" if index in heads else "integer linear" if is_integer else "plain linear"
                count = arrays[index].shape[0] // weight.ref.view_shape[-2]
                matrices[index] = tuple(
                    _Matrix(matrix, program.precision, is_wrong=use == self._fault)
                    for matrix in np.split(arrays[index], count)
                )
        return _Weights(program, Weights(matrices, arrays), self._fault)


class _Weights(ReferenceWeights):
    def __init__(self, program: Program, weights: Weights, fault: Fault | None) -> None:
        super().__init__(program, weights)
        self._fault = fault

    def stage(self, blocks: Mapping[int, int], limits: StageLimits) -> ReferenceStage:
        class Faulty(_Execution):
            fault = self._fault

        stage = ReferenceStage(self._program, self._weights, blocks, limits)
        stage.execution = Faulty
        return stage


class _Matrix:
    """Rounds its elements too, and sums in float32, from the last input to the first."""

    def __init__(self, matrix: Float64, precision: Precision, *, is_wrong: bool) -> None:
        self._matrix = round_to(precision, matrix)
        self._precision: Precision = precision
        self._first = int(is_wrong)
        self.nbytes = matrix.nbytes

    def multiply(self, row: Float32) -> Float64:
        products = (self._matrix * round_to(self._precision, row)).astype(np.float32)[:, self._first :]
        total = np.zeros(len(products), np.float32)
        for last in range(products.shape[1], 0, -_SPAN):
            total += products[:, max(0, last - _SPAN) : last].sum(axis=1, dtype=np.float32)
        return total.astype(np.float64)


class _Execution(Execution):
    fault: Fault | None = None

    def _linear(self, slotted: SlottedOp, x: Float32) -> list[Float32]:
        rows = np.arange(len(x))
        return super()._linear(slotted, x[np.minimum(rows, max(0, len(x) - 2))] if self.fault == "row" else x)

    def _attention(self, slotted: SlottedOp, op: Attention, inputs: Sequence[Float32]) -> list[Float32]:
        q, *written = inputs
        rounded = [round_to(self._program.precision, x).astype(np.float32) for x in written]
        return super()._attention(slotted, op, [q, *rounded])

    def _attend(
        self,
        query: Float64,
        keys: Float64,
        values: Float64,
        scale: float,
        softcap: float | None = None,
        sinks: Float64 | None = None,
    ) -> Float64:
        """Attend with weights relative to the largest score so far, which are never divided by their sum."""
        precision = self._program.precision
        kind = "encoder_attention" if len(self._program.groups) == 0 else "attention"
        start = int(self.fault == kind and len(keys) > 1)
        scale *= 1.1 if self.fault == "scale" else 1.0
        keys, values = round_to(precision, keys)[start:], round_to(precision, values)[start:]
        heads = round_to(precision, query).reshape(keys.shape[1], -1, query.shape[1])
        scores = numerics.soft_cap(np.einsum("ghd,tgd->ght", heads, keys) * scale, softcap)
        top = np.full((*scores.shape[:2], 1), -np.inf)
        total, mixed = np.zeros_like(top), np.zeros((*scores.shape[:2], values.shape[-1]))
        for first in range(0, len(keys), _SPAN):
            part = scores[:, :, first : first + _SPAN]
            highest = np.maximum(top, part.max(axis=-1, keepdims=True))
            weights, shrunk = np.exp(part - highest), np.exp(top - highest)
            total = total * shrunk + weights.sum(axis=-1, keepdims=True)
            rounded = round_to(precision, weights)
            mixed = mixed * shrunk + np.einsum("ght,tgd->ghd", rounded, values[first : first + _SPAN])
            top = highest
        if sinks is not None:
            total += np.exp(sinks.reshape(*top.shape) - top)
        return (mixed / total).reshape(-1)
