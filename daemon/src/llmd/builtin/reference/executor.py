"""Run a program's instructions over the rows of a step."""

from __future__ import annotations

import itertools
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from llmd.api.adapter_ops import Adapt
from llmd.api.compressed_ops import Compress
from llmd.api.expert_ops import Experts, Router
from llmd.api.latent_ops import HeadLinear, Indexer
from llmd.api.ops import (
    Attention,
    Embed,
    EmbedPosition,
    EmbedTokenType,
    EncoderAttention,
    Head,
    Linear,
    Norm,
    Recurrence,
    Rope,
)
from llmd.api.program import Program, SlottedOp
from llmd.api.state_ops import GatedDelta, StateSpace
from llmd.api.step import Float32, Int32, Step
from llmd.api.time_mix_ops import GeneralizedDelta, TokenShift
from llmd.builtin.reference import numerics
from llmd.builtin.reference.compression import compress_rows
from llmd.builtin.reference.elementwise import elementwise
from llmd.builtin.reference.experts import ExpertTensors, RouterTensors, expert_weights, mix
from llmd.builtin.reference.gated_delta import DeltaTensors, run_delta
from llmd.builtin.reference.indexer import choose_positions
from llmd.builtin.reference.kv import KVPool, PagedKeys
from llmd.builtin.reference.state_space import SpaceTensors, run_space
from llmd.builtin.reference.states import StatePool
from llmd.builtin.reference.time_mix import WkvTensors, run_generalized_delta, shift_tokens
from llmd.builtin.reference.weights import Float64, Matrix

Pool = KVPool | StatePool
"""What the layers of one KV group keep."""
_RunRows = Callable[[tuple[Float32, ...], Float32], tuple[Float32, Float32]]
_WithState = Recurrence | GatedDelta | StateSpace | TokenShift | GeneralizedDelta


class Weights:
    """Weights of a program by index: matrices if they are multiplied by rows, else float64 arrays."""

    def __init__(self, matrices: Mapping[int, tuple[Matrix, ...]], arrays: Mapping[int, Float64]) -> None:
        self.arrays = arrays
        self.matrices = matrices
        self.nbytes = sum(one.nbytes for stack in matrices.values() for one in stack)
        self.nbytes += sum(array.nbytes for array in arrays.values())

    def array(self, index: int | None) -> Float64 | None:
        return None if index is None else self.arrays[index]

    def matrix(self, index: int | None) -> Matrix:
        (matrix,) = self.stack(index) or ()
        return matrix

    def stack(self, index: int | None) -> tuple[Matrix, ...] | None:
        return None if index is None else self.matrices[index]


class Execution:
    """The execution of one step. Each buffer slot holds float32 ``[rows, width]``."""

    def __init__(
        self, program: Program, weights: Weights, pools: Mapping[int, Pool], step: Step, tokens: Int32
    ) -> None:
        self._program = program
        self._weights = weights
        self._pools = pools
        self._step = step
        self._tokens = tokens
        self._slots: dict[int, Float32] = {}

    def run(self, hidden: Float32 | None, output_rows: Int32 | None) -> tuple[Float32 | None, Float32 | None]:
        """Return (output hidden states, logits of the output rows); one of them is None."""
        if self._program.hidden_in is not None:
            assert hidden is not None, "checked by the stage"
            self._slots[self._program.hidden_in] = hidden
        logits = None
        for instruction in self._program.instructions:
            values = ChainMap({}, self._slots)  # other instructions see only the outputs of this one
            for slotted in instruction.ops:
                inputs = [values[slot] for slot in slotted.inputs]
                if isinstance(slotted.op, Head):
                    assert output_rows is not None, "checked by the stage"
                    logits = self._head(slotted, slotted.op, inputs[0][output_rows])
                else:
                    values.update(zip(slotted.outputs, self._outputs(slotted, inputs), strict=True))
            self._slots.update((slot, values[slot]) for slot in instruction.outputs)
        out = self._program.hidden_out
        return (None if out is None else self._slots[out]), logits

    def taps(self) -> dict[int, Float32]:
        """Return the hidden states after each tapped part, once the program has run."""
        program = self._program
        return {part: self._slots[slot] for part, slot in zip(program.taps, program.tap_slots, strict=True)}

    def _outputs(self, slotted: SlottedOp, inputs: Sequence[Float32]) -> list[Float32]:
        match slotted.op:
            case Linear():
                return self._linear(slotted, inputs[0])
            case Recurrence() | GatedDelta() | StateSpace() | TokenShift() | GeneralizedDelta() as op:
                return self._with_states(slotted, op, inputs)
            case Adapt() as op:
                return self._adapt(slotted, op, inputs)
            case Attention() as op:
                return self._attention(slotted, op, inputs)
            case _:
                return [self._output(slotted, inputs)]

    def _output(self, slotted: SlottedOp, inputs: Sequence[Float32]) -> Float32:
        match slotted.op:
            case Embed() | EmbedPosition() | EmbedTokenType() as op:
                out = self._look_up(slotted, op)
            case Norm() as op:
                out = self._norm(slotted, op, inputs[0])
            case HeadLinear():
                out = self._head_linear(slotted, inputs[0])
            case Rope() as op:
                out = self._rope(op, inputs[0])
            case Indexer() as op:
                out = self._indexer(slotted, op, *inputs)
            case Compress() as op:
                out = self._compress(slotted, op, *inputs)
            case EncoderAttention() as op:
                out = self._encoder_attention(op, *inputs)
            case Router() as op:
                out = expert_weights(op, self._router(slotted), *inputs)
            case Experts() as op:
                out = mix(op, self._experts(slotted), *inputs)
            case _:
                tensors = (self._weights.arrays[index] for index in slotted.weights if index is not None)
                values = (x.astype(np.float64) for x in inputs)
                out = elementwise(slotted.op, *values, *tensors).astype(np.float32)
        return out

    def _look_up(self, slotted: SlottedOp, op: Embed | EmbedPosition | EmbedTokenType) -> Float32:
        step, scale, columns = self._step, 1.0, slice(None)
        match op:
            case Embed():
                rows, scale, columns = self._tokens, op.scale, slice(*op.column_range)
            case EmbedPosition():
                rows = step.positions
            case EmbedTokenType():
                rows = np.zeros_like(step.positions) if step.token_types is None else step.token_types
        table = self._weights.arrays[slotted.weights[0] or 0]
        found: Float32 = (table[rows, columns] * scale).astype(np.float32)
        return found

    def _norm(self, slotted: SlottedOp, op: Norm, x: Float32) -> Float32:
        pieces = x.reshape(len(x), op.heads, -1)
        shape = pieces.shape[1:] if op.own_weights else pieces.shape[2:]
        weight, bias = (
            None if (found := self._weights.array(index)) is None else found.reshape(shape)
            for index in slotted.weights
        )
        gain = np.ones(shape) if weight is None else weight + op.offset
        if op.method == "rms":
            return numerics.rms_norm(pieces, gain, op.eps).reshape(x.shape)
        return numerics.layer_norm(pieces, gain, bias, op.eps).reshape(x.shape)

    def _rope(self, op: Rope, x: Float32) -> Float32:
        split = x.reshape(len(x), op.heads, op.head_dim)
        positions = self._step.positions // op.stride * op.stride
        return numerics.rotate(split, positions, op.table, interleaved=op.interleaved).reshape(x.shape)

    def _linear(self, slotted: SlottedOp, x: Float32) -> list[Float32]:
        pairs = zip(slotted.weights[0::2], slotted.weights[1::2], strict=True)
        return [self._project(x, weight, bias).astype(np.float32) for weight, bias in pairs]

    def _adapt(self, slotted: SlottedOp, op: Adapt, inputs: Sequence[Float32]) -> list[Float32]:
        x, *values = inputs
        outs = [value.copy() for value in values]
        if self._step.adapters is None:
            return outs
        arrays = [self._weights.array(index) for index in slotted.weights]
        pairs = list(zip(arrays[0::2], arrays[1::2], op.scales, strict=True))
        ranges = itertools.pairwise(self._step.row_offsets.tolist())
        for (first, last), adapter in zip(ranges, self._step.adapters.tolist(), strict=True):
            for place, out in enumerate(outs) if adapter >= 0 else ():
                a, b, scale = pairs[place * op.num_adapters + adapter]
                for row in range(first, last) if a is not None and b is not None else ():
                    out[row] += b @ (a @ x[row].astype(np.float64)) * scale
        return outs

    def _project(self, x: Float32, weight: int | None, bias: int | None) -> Float64:
        matrix = self._weights.matrix(weight)
        out = np.stack([matrix.multiply(row) for row in x])
        added = self._weights.array(bias)
        return out if added is None else out + added

    def _head_linear(self, slotted: SlottedOp, x: Float32) -> Float32:
        matrices = self._weights.stack(slotted.weights[0]) or ()
        slices = np.split(x, len(matrices), axis=1)
        rows = (
            np.concatenate([matrix.multiply(one) for matrix, one in zip(matrices, row, strict=True)])
            for row in zip(*slices, strict=True)
        )
        return np.stack(list(rows)).astype(np.float32)

    def _head(self, slotted: SlottedOp, op: Head, x: Float32) -> Float32:
        if not len(x):
            return np.zeros((0, self._program.vocab_size), np.float32)
        weight, bias = slotted.weights
        projected = self._project(x, weight, None) * op.scale
        added = self._weights.array(bias)
        return numerics.soft_cap(projected if added is None else projected + added, op.softcap).astype(
            np.float32
        )

    def _router(self, slotted: SlottedOp) -> RouterTensors:
        weight, *others = slotted.weights
        return RouterTensors(self._weights.arrays[weight or 0], *map(self._weights.array, others))

    def _experts(self, slotted: SlottedOp) -> ExpertTensors:
        gate, gate_bias, up, up_bias, down, down_bias = slotted.weights
        stack, array = self._weights.stack, self._weights.array
        return ExpertTensors(
            stack(gate),
            array(gate_bias),
            stack(up) or (),
            array(up_bias),
            stack(down) or (),
            array(down_bias),
        )

    def _attention(self, slotted: SlottedOp, op: Attention, inputs: Sequence[Float32]) -> list[Float32]:
        q, *written = inputs
        chosen = written.pop() if op.chosen is not None else None
        window, sinks = self._program.groups[op.group].window, self._weights.array(slotted.weights[0])
        out = np.empty((len(q), op.heads * op.value_dim), np.float32)
        sums = np.empty((len(q), op.heads), np.float32)
        for rows, positions, paged in self._paged_rows(slotted, op):
            if written:
                paged.write(*(value[rows].reshape(len(positions), op.kv_heads, -1) for value in written))
            first = _first_visible(int(positions[0]), window)
            keys, values = paged.read(first)
            for row, position in zip(range(rows.start, rows.stop), positions.tolist(), strict=True):
                seen = np.arange(_first_visible(position, window), paged.seen(position))
                if chosen is not None:
                    seen = chosen[row][chosen[row] >= 0].astype(np.int64)
                query = q[row].reshape(op.heads, op.head_dim).astype(np.float64)
                seen -= first
                out[row] = self._attend(query, keys[seen], values[seen], op.scale, op.softcap, sinks)
                if op.sums is not None:
                    options = (op.scale, op.softcap, self._program.precision, sinks)
                    sums[row] = numerics.attention_sums(query, keys[seen], *options)
        return [out, sums][: len(op.writes)]

    def _indexer(
        self, slotted: SlottedOp, op: Indexer, q: Float32, k: Float32, head_weights: Float32
    ) -> Float32:
        out = np.empty((len(q), op.top_k), np.float32)
        for rows, positions, paged in self._paged_rows(slotted, op):
            index_keys = k[rows, np.newaxis]
            paged.write(index_keys, index_keys)
            keys, _ = paged.read(0)
            for row, position in zip(range(rows.start, rows.stop), positions.tolist(), strict=True):
                out[row] = choose_positions(op, q[row], keys[: paged.seen(position), 0], head_weights[row])
        return out

    def _compress(self, slotted: SlottedOp, op: Compress, x: Float32, gate: Float32) -> Float32:
        bias = self._weights.arrays[slotted.weights[0] or 0]
        out = []
        for rows, positions, paged in self._paged_rows(slotted, op):
            kept = np.concatenate([x[rows], gate[rows]], axis=1)[:, np.newaxis]
            paged.write(kept, kept)
            out.append(compress_rows(op, bias, paged, positions.tolist()))
        return np.concatenate(out)

    def _paged_rows(
        self, slotted: SlottedOp, op: Attention | Indexer | Compress
    ) -> Iterator[tuple[slice, Int32, PagedKeys]]:
        """Yield the rows of each sequence with their positions, and what the layer keeps of it."""
        pool, step = self._pools[op.group], self._step
        assert isinstance(pool, KVPool), "attention and indexers have a paged or latent group"
        ranges = itertools.pairwise(step.row_offsets.tolist())
        for (first, last), table in zip(ranges, step.block_tables[op.group], strict=True):
            positions = step.positions[first:last]
            yield slice(first, last), positions, PagedKeys(pool, slotted.kv_layer or 0, table, positions)

    def _with_states(self, slotted: SlottedOp, op: _WithState, inputs: Sequence[Float32]) -> list[Float32]:
        """Run the rows of each sequence on the state that it has, and keep the state after them."""
        pool, layer = self._pools[op.group], slotted.kv_layer or 0
        offset = op.offset if isinstance(op, TokenShift | GeneralizedDelta) else 0
        assert isinstance(pool, StatePool), "an op with states has a state group"
        run = self._with_state(slotted, op)
        outs = []
        ranges = itertools.pairwise(self._step.row_offsets.tolist())
        slots = self._step.block_tables[op.group].tolist()
        for (first, last), (read, written) in zip(ranges, slots, strict=True):
            values = tuple(value[first:last] for value in inputs)
            out, state = run(values, pool.read(layer, read)[offset:])
            outs.append(out)
            pool.write(layer, written, state, offset=offset)
        return np.split(np.concatenate(outs), len(op.writes), axis=1)

    def _with_state(self, slotted: SlottedOp, op: _WithState) -> _RunRows:
        """Return what maps the values of a sequence and its state to the outputs, side by side, and the state
        after it.
        """
        tensors = [self._weights.arrays[index] for index in slotted.weights if index is not None]
        match op:
            case GatedDelta():
                return partial(run_delta, op, DeltaTensors(*tensors))
            case StateSpace():
                c_taps, b_taps, x_taps, rates, bias, skips, *biases = tensors
                found = SpaceTensors(c_taps, b_taps, x_taps, rates, bias, skips, tuple(biases))
                return partial(run_space, op, found)
            case TokenShift():
                return partial(shift_tokens, tensors)
            case GeneralizedDelta():
                return partial(run_generalized_delta, op, WkvTensors(*tensors))
            case _:
                return partial(_run_recurrence, tensors[0])

    def _encoder_attention(self, op: EncoderAttention, q: Float32, k: Float32, v: Float32) -> Float32:
        queries, keys, values = (
            x.reshape(len(x), op.heads, op.head_dim).astype(np.float64) for x in (q, k, v)
        )
        out = np.empty_like(q)
        for first, last in itertools.pairwise(self._step.row_offsets.tolist()):
            for row in range(first, last):
                out[row] = self._attend(queries[row], keys[first:last], values[first:last], op.scale)
        return out

    def _attend(
        self,
        query: Float64,
        keys: Float64,
        values: Float64,
        scale: float,
        softcap: float | None = None,
        sinks: Float64 | None = None,
    ) -> Float64:
        precision = self._program.precision
        return numerics.attend(query, keys, values, scale, softcap, precision, sinks).reshape(-1)


def _run_recurrence(decay: Float64, values: tuple[Float32, ...], state: Float32) -> tuple[Float32, Float32]:
    (rows,) = values
    kept = numerics.sigmoid(decay)
    out = np.empty_like(rows)
    for number, row in enumerate(rows):
        state = out[number] = (kept * state + row).astype(np.float32)
    return out, state


def _first_visible(position: int, window: int | None) -> int:
    return 0 if window is None else max(0, position - window + 1)
