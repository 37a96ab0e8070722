"""Which launches the instructions of a program become, and that fused ones give what single ones give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from llmd.api import (
    HIDDEN,
    Add,
    Attention,
    Glu,
    HostHidden,
    KVGroup,
    Linear,
    ModelPlan,
    Norm,
    Op,
    Part,
    Program,
    Rope,
    RopeTable,
    StageLimits,
    TensorRef,
)
from llmd.api.step import Float32
from llmd.models.lowering import lower
from llmd.testing.encoder_plan import TinyEncoder
from llmd.testing.plans import TinyModel
from llmd_backend_cuda.loaded import Loaded, PlacedWeights
from llmd_backend_cuda.programs import PATTERNS, body_launches, head_launches
from llmd_backend_cuda.shapes import attention_shapes
from llmd_backend_cuda.stage_memory import StageMemory
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, load, lowered, step_of
from tests.plugins.backend_cpu.workbench import random_rows
from tests.plugins.backend_cuda.bench import MODEL, PLAN

pytestmark = NEEDS_COMPILER

WIDTH, FFN, HEADS, KV_HEADS, HEAD_DIM = 48, 72, 4, 2, 12
LIMITS = StageLimits(max_rows=32, max_sequences=2, max_outputs=12)


def matrix(name: str, out: int, width: int) -> TensorRef:
    return TensorRef(name, (out, width))


def vector(name: str, width: int = WIDTH) -> TensorRef:
    return TensorRef(name, (width,))


def llama_mixer(*, norms: bool = False) -> tuple[Op, ...]:
    """Return attention as in Llama, or with norms of queries and keys as in Qwen3."""
    kv = KV_HEADS * HEAD_DIM
    weights = matrix("q", WIDTH, WIDTH), matrix("k", kv, WIDTH), matrix("v", kv, WIDTH)
    table = RopeTable(tuple(10.0 ** (-i / 3) for i in range(HEAD_DIM // 2)))
    q, k = ("qn", "kn") if norms else ("q", "k")
    head_norms = (
        Norm("q", "qn", vector("q_norm", HEAD_DIM), 1e-6, heads=HEADS),
        Norm("k", "kn", vector("k_norm", HEAD_DIM), 1e-6, heads=KV_HEADS),
    )
    return (
        Norm(HIDDEN, "x", vector("norm1"), 1e-5),
        Linear("x", ("q", "k", "v"), weights, (None, None, None)),
        *(head_norms if norms else ()),
        Rope(q, "qr", HEADS, HEAD_DIM, table),
        Rope(k, "kr", KV_HEADS, HEAD_DIM, table),
        Attention("qr", "kr", "v", "mixed", 0, 0, HEADS, KV_HEADS, HEAD_DIM, HEAD_DIM**-0.5),
        Linear("mixed", ("o",), (matrix("o", WIDTH, WIDTH),), (None,)),
        Add(HIDDEN, "o", HIDDEN),
    )


def llama_ffn(*, norm: Norm | None = None, glu: Glu | None = None, add: Add | None = None) -> tuple[Op, ...]:
    weights = matrix("gate", FFN, WIDTH), matrix("up", FFN, WIDTH)
    return (
        norm or Norm(HIDDEN, "x", vector("norm2"), 1e-5),
        Linear("x", ("g", "u"), weights, (None, None)),
        glu or Glu("g", "u", "gated", "silu"),
        Linear("gated", ("down",), (matrix("down", WIDTH, FFN),), (None,)),
        add or Add(HIDDEN, "down", HIDDEN),
    )


def plan_of(*ops: Op) -> ModelPlan:
    group = KVGroup(0, None, KV_HEADS, HEAD_DIM, (0,))
    uses_group = any(isinstance(op, Attention) for op in ops)
    parts = (Part("before", "ffn", 0, ()), Part("tested", "mixer", 0, ops), Part("after", "ffn", 0, ()))
    return ModelPlan("test", WIDTH, 50, 64, 64, (group,) if uses_group else (), parts)


def names(program: Program, rows: int) -> list[str]:
    """Return the kernels of the launches for some rows."""
    card = SimulatedCard()
    loaded = load(card, program).loaded
    memory = StageMemory(card, program, {0: 2, 1: 2, 2: 2}, LIMITS, attention_shapes(program))
    weights = PlacedWeights.of(program, loaded)
    context, memories = memory.context(rows, weights), memory.memories(rows, weights.tables)
    launches = [launch for _, launch in body_launches(context, memories, rows)]
    return [launch.kernel.spec.name for launch in launches]


def without_attention(found: Sequence[str]) -> list[str]:
    """Return the kernels without those of attention, which are one or two."""
    assert 1 <= sum(name.startswith("attention") for name in found) <= 2
    return [name for name in found if not name.startswith("attention")]


def run(program: Program, x: Float32) -> Float32:
    """Return the hidden states that a program makes of one sequence."""
    weights = load(SimulatedCard(), program)
    stage = weights.stage({group.id: 4 for group in program.groups}, LIMITS)
    step = step_of([(0, len(x))], *([[0, 1]] for _ in program.groups))
    return stage.hidden(stage.submit(step, HostHidden(x), None)).host().copy()


def assert_fused_as_single(*ops: Op, tolerance: float = 1e-4) -> None:
    """Compare with the same ops without any pattern, for few rows and for many."""
    plan = plan_of(*ops)
    fused = lowered(plan, 1, 2)
    single = lower(
        plan, 1, 2, format_of=lambda _kind, ref: "f32" if len(ref.shape) == 1 else "f16", precision="f16"
    )
    assert len(fused.instructions) < len(single.instructions)
    for rows in (3, 20):
        x = random_rows(rows, WIDTH)
        np.testing.assert_allclose(run(fused, x), run(single, x), rtol=tolerance, atol=tolerance)


# Llama


def test_a_layer_of_llama_is_at_most_seven_launches_for_a_row() -> None:
    found = names(lowered(plan_of(*llama_mixer(), *llama_ffn()), 1, 2), 1)
    assert len(found) <= 7
    assert without_attention(found) == ["gemv", "store_kv", "gemv", "gemv", "gemv"]


def test_a_layer_of_llama_for_many_rows() -> None:
    program = lowered(plan_of(*llama_mixer(), *llama_ffn()), 1, 2)
    found = Counter(without_attention(names(program, 32)))
    assert found["round_rows"] == found["gemm"] == 4
    assert found["glu_rows"] == 1
    assert found.keys() <= {"round_rows", "gemm", "add_slices", "glu_rows", "store_kv"}


def test_norms_of_queries_and_keys_are_no_launches() -> None:
    for norms in (False, True):
        program = lowered(plan_of(*llama_mixer(norms=norms)), 1, 2)
        assert without_attention(names(program, 1)) == ["gemv", "store_kv", "gemv"]


def test_a_norm_before_a_sum_is_one_launch_with_it() -> None:
    """As in Gemma, where each part ends with a norm."""
    before, last = llama_ffn()[:-1], llama_ffn()[-1]
    ops = (*before, Norm("down", "normed", vector("norm3"), 1e-5), Add(HIDDEN, "normed", HIDDEN, 0.7))
    assert isinstance(last, Add)
    assert names(lowered(plan_of(*ops), 1, 2), 1) == ["gemv", "gemv", "norm_rows"]
    assert_fused_as_single(*ops)


def test_a_norm_that_is_not_what_is_added_is_a_launch_of_its_own() -> None:
    norm = Norm(HIDDEN, "normed", vector("norm"), 1e-5)
    for add in (Add("normed", HIDDEN, HIDDEN, 0.7), Add("normed", "normed", HIDDEN)):
        assert names(lowered(plan_of(norm, add), 1, 2), 1) == ["norm_rows", "add_rows"]
        assert_fused_as_single(norm, add)


def test_queries_keys_and_values_in_two_formats_are_two_products() -> None:
    plan = plan_of(*llama_mixer())

    def format_of(_kind: str, ref: TensorRef) -> str:
        return "q8_g32" if ref.name == "v" else "f16" if len(ref.shape) == 2 else "f32"

    program = lower(plan, 1, 2, format_of=format_of, patterns=PATTERNS, activations="f16", precision="f16")
    assert without_attention(names(program, 1)) == ["gemv", "gemv", "store_kv", "gemv"]


# What is fused, and what is not


def test_the_feed_forward_of_few_rows_is_two_launches() -> None:
    program = lowered(plan_of(*llama_ffn()), 1, 2)
    assert names(program, 8) == ["gemv", "gemv"]
    assert "glu_rows" in names(program, 9)
    assert_fused_as_single(*llama_ffn())


@pytest.mark.parametrize(
    "norm",
    [
        Norm(HIDDEN, "x", vector("norm2"), 1e-5, "layer"),
        Norm(HIDDEN, "x", vector("norm2"), 1e-5, "layer", bias=vector("norm2.bias")),
        Norm(HIDDEN, "x", vector("norm2"), 1e-5, bias=vector("norm2.bias")),
        Norm(HIDDEN, "x", vector("piece", WIDTH // 4), 1e-5, heads=4),
        Norm(HIDDEN, "x", None, 1e-5, offset=1.0),
    ],
)
def test_other_norms_are_launches_of_their_own(norm: Norm) -> None:
    ops = llama_ffn(norm=norm)
    assert names(lowered(plan_of(*ops), 1, 2), 1) == ["norm_rows", "gemv", "glu_rows", "gemv"]
    assert_fused_as_single(*ops)


@pytest.mark.parametrize(
    "norm", [Norm(HIDDEN, "x", None, 1e-5), Norm(HIDDEN, "x", vector("n"), 1e-2, offset=1.0)]
)
def test_norms_without_gain_or_with_offset_are_fused(norm: Norm) -> None:
    ops = llama_ffn(norm=norm)
    assert names(lowered(plan_of(*ops), 1, 2), 1) == ["gemv", "gemv"]
    assert_fused_as_single(*ops)


def test_a_norm_that_is_read_elsewhere_is_written() -> None:
    """As in layers whose attention and feed-forward read the same norm."""
    ops = (
        Norm(HIDDEN, "x", vector("norm"), 1e-5),
        Linear("x", ("a",), (matrix("a", WIDTH, WIDTH),), (None,)),
        Linear("x", ("b",), (matrix("b", WIDTH, WIDTH),), (None,)),
        Add("a", "b", HIDDEN),
    )
    assert names(lowered(plan_of(*ops), 1, 2), 1) == ["norm_rows", "gemv", "gemv"]
    assert_fused_as_single(*ops)


def test_a_norm_that_the_gate_reads_is_written() -> None:
    ops = (
        Norm(HIDDEN, "x", vector("norm"), 1e-5),
        Linear("x", ("g",), (matrix("g", WIDTH, WIDTH),), (None,)),
        Glu("g", "x", HIDDEN, "silu"),
    )
    assert names(lowered(plan_of(*ops), 1, 2), 1) == ["norm_rows", "gemv", "glu_rows"]
    assert_fused_as_single(*ops)


def test_a_gate_that_comes_second_is_not_fused() -> None:
    ops = llama_ffn(glu=Glu("u", "g", "gated", "silu"))
    assert names(lowered(plan_of(*ops), 1, 2), 1) == ["gemv", "glu_rows", "gemv"]
    assert_fused_as_single(*ops)


def test_a_gate_that_is_read_elsewhere_is_written() -> None:
    ops = (
        Norm(HIDDEN, "x", vector("norm"), 1e-5),
        Linear("x", ("g", "u"), (matrix("g", WIDTH, WIDTH), matrix("u", WIDTH, WIDTH)), (None, None)),
        Glu("g", "u", "gated", "silu"),
        Add("gated", "g", HIDDEN),
    )
    assert names(lowered(plan_of(*ops), 1, 2), 1) == ["gemv", "glu_rows", "add_rows"]
    assert_fused_as_single(*ops)


def test_gates_in_two_formats_are_two_products() -> None:
    def format_of(_kind: str, ref: TensorRef) -> str:
        return "q8_g32" if ref.name == "up" else "f16" if len(ref.shape) == 2 else "f32"

    program = lower(plan_of(*llama_ffn()), 1, 2, format_of=format_of, patterns=PATTERNS, precision="f16")
    assert names(program, 1) == ["gemv", "gemv", "glu_rows", "gemv"]


@pytest.mark.parametrize(
    ("add", "launches"),
    [
        (Add(HIDDEN, "down", HIDDEN, scale=0.3), ["gemv", "gemv"]),
        (Add("down", HIDDEN, HIDDEN, scale=0.3), ["gemv", "gemv", "add_rows"]),
        (Add("down", "down", HIDDEN, scale=0.3), ["gemv", "gemv", "add_rows"]),
    ],
)
def test_only_the_second_input_of_an_add_is_fused(add: Add, launches: Sequence[str]) -> None:
    ops = llama_ffn(add=add)
    assert names(lowered(plan_of(*ops), 1, 2), 1) == launches
    assert_fused_as_single(*ops)


def test_a_product_that_is_added_and_read_elsewhere_is_written() -> None:
    ops = (
        Linear(HIDDEN, ("a",), (matrix("a", WIDTH, WIDTH),), (vector("bias"),)),
        Add(HIDDEN, "a", "sum", scale=2.0),
        Glu("sum", "a", HIDDEN, "silu"),
    )
    assert names(lowered(plan_of(*ops), 1, 2), 1) == ["gemv", "add_rows", "glu_rows"]
    assert_fused_as_single(*ops)


def test_the_bias_is_scaled_with_the_product() -> None:
    product = Linear(HIDDEN, ("a",), (matrix("a", WIDTH, WIDTH),), (vector("bias"),))
    assert_fused_as_single(product, Add(HIDDEN, "a", HIDDEN, scale=0.25))


@pytest.mark.parametrize("norms", [False, True])
def test_norms_and_rotations_are_done_where_keys_are_stored(norms: bool) -> None:  # noqa: FBT001 - cases
    assert_fused_as_single(*llama_mixer(norms=norms), tolerance=2e-3)


@pytest.mark.parametrize(
    ("q_norm", "launches"),
    [
        (Norm("q", "qn", None, 1e-3, heads=HEADS), 0),
        (Norm("q", "qn", vector("n", HEAD_DIM), 1e-3, heads=HEADS, offset=1.0), 0),
        (Norm("q", "qn", vector("n", HEAD_DIM), 1e-3, "layer", heads=HEADS), 2),
        (Norm("q", "qn", vector("n", HEAD_DIM), 1e-3, heads=HEADS, bias=vector("b", HEAD_DIM)), 2),
        (Norm("q", "qn", vector("n"), 1e-3), 2),
    ],
)
def test_only_rms_norms_of_heads_are_done_there(q_norm: Norm, launches: int) -> None:
    ops = [q_norm if isinstance(op, Norm) and op.out == "qn" else op for op in llama_mixer(norms=True)]
    found = without_attention(names(lowered(plan_of(*ops), 1, 2), 1))
    assert found == ["gemv", *["norm_rows"] * launches, "store_kv", "gemv"]
    assert_fused_as_single(*ops, tolerance=2e-3)


def test_a_norm_of_queries_that_is_read_elsewhere_is_written() -> None:
    *ops, last = llama_mixer(norms=True)
    ops += [Add("qn", "o", "sum"), Add(HIDDEN, "sum", HIDDEN)]
    assert isinstance(last, Add)
    found = without_attention(names(lowered(plan_of(*ops), 1, 2), 1))
    assert found == ["gemv", "norm_rows", "norm_rows", "store_kv", "gemv", "add_rows"]
    assert_fused_as_single(*ops, tolerance=2e-3)


# Whole programs


def test_the_head_is_apart_from_the_body() -> None:
    program = lowered(PLAN, 5)
    card = SimulatedCard()
    loaded = load(card, program).loaded
    memory = StageMemory(card, program, {}, LIMITS, ())
    context = memory.context(1, PlacedWeights.of(program, loaded))
    logits = card.allocate(4 * LIMITS.max_outputs * MODEL.vocab)

    def heads(outputs: int) -> Iterator[str]:
        return (launch.kernel.spec.name for launch in head_launches(context, logits.pointer, outputs))

    assert names(program, 1) == ["norm_rows"]
    assert list(heads(1)) == ["gemv"]
    assert list(heads(12))[:2] == ["round_rows", "gemm"]
    body = lowered(PLAN, 0, 5)
    memory = StageMemory(card, body, {0: 1, 1: 1}, LIMITS, attention_shapes(body))
    context = memory.context(1, PlacedWeights.of(body, Loaded.empty()))
    assert list(head_launches(context, logits.pointer, 1)) == []


def test_lookups_and_other_ops_are_single_launches() -> None:
    found = Counter(names(lowered(TinyEncoder().plan()), 2))
    assert (found["embed"], found["encoder_attention"], found["activate_rows"]) == (3, 2, 2)
    assert Counter(names(lowered(TinyModel(hybrid=True).plan()), 2))["recurrence"] == 2
