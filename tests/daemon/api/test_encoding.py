"""The numbers that native loops read say the same as the program."""

from __future__ import annotations

from collections.abc import Iterator

from llmd.api import OP_KINDS, Attention, Head, Norm, Program, Rope, encode
from llmd.api.encoding import ACTIVATIONS, EncodedProgram


class Reader:
    """Reads records as a native loop does."""

    def __init__(self, encoded: EncodedProgram) -> None:
        self._numbers = iter(encoded.records.tolist())
        self._floats = encoded.floats

    def number(self) -> int:
        value: int = next(self._numbers)
        return value

    def numbers(self) -> list[int]:
        return [self.number() for _ in range(self.number())]

    def ops(self) -> Iterator[tuple[str, list[int], list[int], list[int], list[int], list[float]]]:
        for _ in range(self.number()):
            kind = OP_KINDS[self.number()]
            lists = self.numbers(), self.numbers(), self.numbers(), self.numbers()
            yield (kind, *lists, [float(self._floats[i]) for i in self.numbers()])


def test_every_op_reads_back(program: Program) -> None:
    encoded = encode(program)
    reader = Reader(encoded)
    for instruction in program.instructions:
        for (kind, inputs, outputs, weights, _, _), slotted in zip(
            reader.ops(), instruction.ops, strict=True
        ):
            assert kind == slotted.op.kind
            assert (tuple(inputs), tuple(outputs)) == (slotted.inputs, slotted.outputs)
            assert weights == [-1 if w is None else w for w in slotted.weights]
    assert encoded.starts[-1] == len(encoded.records)
    assert len(encoded.starts) == len(program.instructions) + 1


def test_options_stand_in_the_documented_places(program: Program) -> None:
    reader = Reader(encode(program))
    for instruction in program.instructions:
        for (*_, integers, floats), slotted in zip(reader.ops(), instruction.ops, strict=True):
            match slotted.op:
                case Norm() as op:
                    assert integers == [("rms", "layer").index(op.method), op.heads]
                    assert floats == [op.eps, op.offset]
                case Rope() as op:
                    assert integers == [op.heads, op.head_dim, slotted.rope, int(op.interleaved)]
                case Attention() as op:
                    window = program.groups[op.group].window or 0
                    assert integers == [
                        op.group,
                        slotted.kv_layer,
                        op.heads,
                        op.kv_heads,
                        op.head_dim,
                        window,
                    ]
                    assert floats == [op.scale, op.softcap or 0.0]
                case Head() as op:
                    assert floats == [op.scale, op.softcap or 0.0]
                case _:
                    assert len(integers) <= 1


def test_each_activation_has_its_own_number(program: Program) -> None:
    reader = Reader(encode(program))
    seen = [
        integers[0]
        for instruction in program.instructions
        for (kind, *_, integers, _) in reader.ops()
        if kind == "glu"
    ]
    assert seen == list(range(len(ACTIVATIONS)))


def test_arrays_have_the_dtypes_that_native_code_expects(program: Program) -> None:
    encoded = encode(program)
    dtypes = [str(array.dtype) for array in (encoded.records, encoded.floats, encoded.starts)]
    assert dtypes == ["int64", "float64", "int64"]
