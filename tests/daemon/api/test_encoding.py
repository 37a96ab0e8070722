"""An encoded program means the same as the program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

import msgspec
import pytest

from llmd.api import (
    HIDDEN,
    OP_KINDS,
    Activate,
    Adapt,
    Attention,
    CollapseStreams,
    Compress,
    Embed,
    EmbedPosition,
    EmbedTokenType,
    EncoderAttention,
    GatedDelta,
    GeneralizedDelta,
    Glu,
    Head,
    Indexer,
    Join,
    KVGroup,
    LowRank,
    MergeAttention,
    MixStreams,
    ModelPlan,
    Norm,
    Op,
    Part,
    Program,
    Rope,
    RopeTable,
    StateSpace,
    StreamWeights,
    TensorRef,
    TokenShift,
    encode,
)
from llmd.api.activations import Activation
from llmd.api.encoding import EncodedProgram
from llmd.api.ops import KVOp
from llmd.models.lowering import lower
from llmd.testing.plans import TinyModel


class Reader:
    """Read records as native code does."""

    def __init__(self, encoded: EncodedProgram) -> None:
        self._numbers = iter(encoded.records.tolist())
        self._floats = encoded.floats

    def at_end(self) -> bool:
        return next(self._numbers, None) is None

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
    reader = Reader(encode(program))
    for instruction in program.instructions:
        for (kind, inputs, outputs, weights, _, _), slotted in zip(
            reader.ops(), instruction.ops, strict=True
        ):
            assert kind == slotted.op.kind
            assert (tuple(inputs), tuple(outputs)) == (slotted.inputs, slotted.outputs)
            assert weights == [-1 if w is None else w for w in slotted.weights]
    assert reader.at_end()


def test_options_stand_in_the_documented_places(program: Program) -> None:
    reader = Reader(encode(program))
    for instruction in program.instructions:
        for (*_, integers, floats), slotted in zip(reader.ops(), instruction.ops, strict=True):
            match slotted.op:
                case Norm() as op:
                    assert integers == [("rms", "layer").index(op.method), op.heads, int(op.own_weights)]
                    assert floats == [op.eps, op.offset]
                case Rope() as op:
                    assert integers == [op.heads, op.head_dim, slotted.rope, int(op.interleaved), op.stride]
                case Attention() as op:
                    window = program.groups[op.group].window or 0
                    assert integers == [
                        op.group,
                        slotted.kv_layer,
                        op.heads,
                        op.kv_heads,
                        op.head_dim,
                        window,
                        0,
                        1,
                    ]
                    assert floats == [op.scale, op.softcap or 0.0]
                case Head() as op:
                    assert floats == [op.scale, op.softcap or 0.0]
                case _:
                    assert len(integers) <= 1


@pytest.mark.parametrize("kind", ["glu", "activate"])
def test_each_activation_has_its_own_number(kind: str) -> None:
    ops = [
        Glu(HIDDEN, HIDDEN, HIDDEN, name) if kind == "glu" else Activate(HIDDEN, HIDDEN, name)
        for name in get_args(Activation)
    ]
    assert [integers for _, integers, _ in read_back(ops)] == [[i] for i in range(len(ops))]


def test_joined_values_have_the_number_of_their_heads() -> None:
    assert read_back([Join(HIDDEN, HIDDEN, "x", 4)]) == [("join", [4], [])]


def test_an_indexer_has_its_sizes_there_and_attention_that_positions_are_chosen() -> None:
    latents = tuple(KVGroup(group, None, 1, 8, (0,), kind="latent") for group in range(2))
    indexer = Indexer(HIDDEN, HIDDEN, HIDDEN, "chosen", 1, 0, heads=3, head_dim=8, top_k=5)
    attention = Attention(HIDDEN, HIDDEN, HIDDEN, "y", 0, 0, 2, 1, 8, 0.5, chosen="chosen")
    found = read_back([indexer, attention], latents)
    assert found == [("indexer", [1, 0, 3, 8, 5, 1], []), ("attention", [0, 0, 2, 1, 8, 0, 1, 1], [0.5, 0.0])]


def test_ops_of_compressed_attention_have_their_strides_there() -> None:
    parts, vectors = (
        KVGroup(0, 8, 1, 32, (0,), kind="latent"),
        KVGroup(1, None, 1, 8, (0,), kind="latent", stride=4),
    )
    indexer = Indexer(HIDDEN, HIDDEN, HIDDEN, "chosen", 1, 0, heads=3, head_dim=8, top_k=5)
    attention = Attention(HIDDEN, HIDDEN, HIDDEN, "y", 1, 0, 2, 1, 8, 0.5, chosen="chosen", sums="s")
    compress = Compress("y", "y", "z", TensorRef("b", (64,)), 0, 0, dim=8, stride=4, overlap=True)
    found = read_back(
        [indexer, attention, compress, MergeAttention("y", "s", "y", "s", "y", 2)], (parts, vectors)
    )
    assert found == [
        ("indexer", [1, 0, 3, 8, 5, 4], []),
        ("attention", [1, 0, 2, 1, 8, 0, 1, 4], [0.5, 0.0]),
        ("compress", [0, 0, 8, 4, 1], []),
        ("merge_attention", [2], []),
    ]
    table = RopeTable((1.0, 0.1))
    assert read_back([Rope(HIDDEN, HIDDEN, 2, 4, table, stride=16)]) == [("rope", [2, 4, 0, 0, 16], [])]


def test_streams_have_their_number_and_the_rounds_there() -> None:
    weight, bias, scale = TensorRef("w", (8, 8)), TensorRef("b", (8,)), TensorRef("s", (3,))
    ops: list[Op] = [
        StreamWeights(HIDDEN, "w", weight, bias, scale, 2, eps=0.5, floor=0.25, rounds=7),
        CollapseStreams(HIDDEN, "w", "x", 2),
        MixStreams(HIDDEN, "x", "w", HIDDEN, 2),
    ]
    assert read_back(ops) == [
        ("stream_weights", [2, 7], [0.5, 0.25]),
        ("collapse_streams", [2], []),
        ("mix_streams", [2], []),
    ]


def test_an_embedding_has_its_first_column_there() -> None:
    table = TensorRef("t", (16, 24))
    ops = [Embed(HIDDEN, TensorRef("all", (16, 8)), 2.0), Embed(HIDDEN, table, columns=(5, 13))]
    assert read_back(ops) == [("embed", [0], [2.0]), ("embed", [5], [1.0])]


def test_a_gate_has_its_threshold_and_its_limit() -> None:
    ops = [Glu(HIDDEN, HIDDEN, HIDDEN, "silu", limit=7.0), Glu(HIDDEN, HIDDEN, HIDDEN, "relu", 0.5)]
    assert [floats for _, _, floats in read_back(ops)] == [[0.0, 7.0], [0.5, 0.0]]


def test_ops_of_encoders_have_their_options_in_the_documented_places() -> None:
    table = TensorRef("t", (16, 8))
    ops: list[Op] = [
        EmbedPosition(HIDDEN, table),
        EmbedTokenType(HIDDEN, table),
        EncoderAttention(HIDDEN, HIDDEN, HIDDEN, HIDDEN, 2, 4, 0.25),
    ]
    assert read_back(ops) == [
        ("embed_position", [], []),
        ("embed_token_type", [], []),
        ("encoder_attention", [2, 4], [0.25]),
    ]


def test_adapters_have_their_number_and_their_scales_there() -> None:
    change = LowRank(TensorRef("a", (2, 8)), TensorRef("b", (8, 2)), 1.5)
    op = Adapt(HIDDEN, (HIDDEN,), (HIDDEN,), ((None, change),))
    assert read_back([op]) == [("adapt", [2], [0.0, 1.5])]


def test_a_recurrence_has_its_group_and_its_layer_there() -> None:
    plan = TinyModel(hybrid=True).plan()
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")
    reader = Reader(encode(program))
    found = [op for _ in program.instructions for op in reader.ops()]
    assert [integers for kind, *_, integers, _ in found if kind == "recurrence"] == [[2, 0], [2, 1]]


def test_the_gated_delta_rule_has_its_sizes_there() -> None:
    taps = TensorRef("taps", (6, 1, 4))
    op = GatedDelta(
        *(HIDDEN,) * 6, taps, taps, taps, TensorRef("rates", (4,)), TensorRef("bias", (12,)),
        group=0, layer=0, heads=4, key_heads=2, key_dim=3, value_dim=2, rates_as="negative", tiled=True,
    )  # fmt: skip
    found = encoded_alone(op, op.state_elements)
    assert (found[0], found[4], found[5]) == ("gated_delta", [0, 0, 4, 2, 3, 2, 4, 1, 1, 1], [])


def encoded_alone(op: KVOp, state_elements: int) -> tuple[Any, ...]:
    """Return the fields of the record of an op with a state."""
    group = KVGroup(0, None, 0, 0, (0,), kind="state", state_bytes=4 * state_elements)
    part = Part("tested", "mixer", 0, (op,))
    plan = ModelPlan("t", 8, 5, 16, 16, (group,), (Part("before", "ffn", 0, ()), part))
    program = lower(plan, 1, 2, format_of=lambda _kind, _ref: "f32")
    reader = Reader(encode(program))
    (found,) = [op for _ in program.instructions for op in reader.ops()]
    return tuple(found)


def test_ops_of_rwkv_7_have_their_place_in_the_state_there() -> None:
    vector = TensorRef("vector", (8,))
    shift = TokenShift(HIDDEN, ("a", "b"), (vector, vector), 0, 0, offset=3)
    assert encoded_alone(shift, 11)[0::4] == ("token_shift", [0, 0, 3])
    delta = GeneralizedDelta(*(HIDDEN,) * 7, vector, vector, vector, 0, 0, heads=2, head_dim=4, offset=3)
    assert encoded_alone(delta, 35)[0::4] == ("generalized_delta", [0, 0, 2, 4, 3])


def test_a_state_space_has_its_sizes_and_bounds_there() -> None:
    taps = TensorRef("taps", (6, 1, 4))
    vector = TensorRef("vector", (4,))
    op = StateSpace(
        *(HIDDEN,) * 5, taps, taps, taps, vector, vector, vector,
        group=0, layer=0, heads=4, groups=2, state_size=3, head_dim=2, rates_as="negative",
        least_time=0.25, most_time=1.5,
    )  # fmt: skip
    kind, *_, weights, integers, floats = encoded_alone(op, op.state_elements)
    assert (kind, integers, floats) == ("state_space", [0, 0, 4, 2, 3, 2, 4, 1], [0.25, 1.5])
    assert weights[-3:] == [-1, -1, -1]
    unbounded = msgspec.structs.replace(op, most_time=None)
    assert encoded_alone(unbounded, op.state_elements)[-1] == [0.25, 0.0]


def read_back(
    ops: Sequence[Op], groups: tuple[KVGroup, ...] = ()
) -> list[tuple[str, list[int], list[float]]]:
    """Return kind, integers and floats of each op, for a program of only these ops."""
    part = Part("tested", "mixer", 0, tuple(ops))
    plan = ModelPlan("t", 8, 5, 16, 16, groups, (Part("before", "ffn", 0, ()), part))
    program = lower(plan, 1, 2, format_of=lambda _kind, _ref: "f32")
    reader = Reader(encode(program))
    found = [op for _ in program.instructions for op in reader.ops()]
    return [(kind, integers, floats) for kind, *_, integers, floats in found]


def test_each_instruction_names_its_part_and_outputs() -> None:
    plan = TinyModel().plan()
    patterns = (("rope", "rope", "attention"), ("add", "norm"))
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32", patterns=patterns)
    numbers = iter(encode(program).instructions.tolist())
    for instruction in program.instructions:
        assert next(numbers) == instruction.part
        assert tuple(next(numbers) for _ in range(next(numbers))) == instruction.outputs
    assert next(numbers, None) is None


def test_arrays_have_the_dtypes_that_native_code_expects(program: Program) -> None:
    encoded = encode(program)
    dtypes = [str(array.dtype) for array in (encoded.records, encoded.floats, encoded.instructions)]
    assert dtypes == ["int64", "float64", "int64"]
