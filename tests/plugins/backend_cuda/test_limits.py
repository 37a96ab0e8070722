"""What the kernels cannot run is refused before anything is loaded."""

from __future__ import annotations

import msgspec

from llmd.api import (
    HIDDEN,
    EncoderAttention,
    Indexer,
    KVGroup,
    Linear,
    ModelPlan,
    Norm,
    Op,
    Part,
    Program,
    Rope,
    RopeTable,
    StreamWeights,
    TensorRef,
)
from llmd.testing.plans import TinyModel
from llmd.testing.state_cases import gated_delta, state_space
from llmd_backend_cuda.limits import refusals
from llmd_backend_cuda.matrix_forms import CLAIMED_FORMATS
from tests.cuda.simulated import lowered
from tests.cuda.state_bench import Bench
from tests.plugins.backend_cpu.workbench import attention


def program_of(*ops: Op, width: int, groups: tuple[KVGroup, ...] = ()) -> Program:
    parts = (Part("before", "ffn", 0, ()), Part("tested", "mixer", 0, ops), Part("after", "ffn", 0, ()))
    return lowered(ModelPlan("test", width, 50, 64, 64, groups, parts), 1, 2)


def refused(program: Program) -> list[str]:
    return [refusal.what for refusal in refusals(program)]


def test_programs_of_all_claimed_formats_are_taken() -> None:
    for name in CLAIMED_FORMATS:
        assert refusals(lowered(TinyModel(hybrid=True).plan(), fmt=name)) == []


def test_formats_with_outliers_are_refused() -> None:
    (refusal,) = refusals(lowered(TinyModel().plan(), fmt="q8_wide"))
    assert refusal.what == "format q8_wide"
    assert "the CUDA backend has f32, f16, bf16, " in refusal.reason


def test_each_reason_is_given_once() -> None:
    """Two layers have the same large heads."""
    program = lowered(TinyModel(layers=2, head_dim=600, rotary_dim=1100).plan())
    assert sorted(refused(program)) == ["heads of 600 elements", "rotations of 1100 elements"]


def test_heads_that_are_too_large_are_refused() -> None:
    group = KVGroup(0, None, 1, 580, (0,))
    assert refused(program_of(*attention(1, 1, 580), width=580, groups=(group,))) == ["heads of 580 elements"]
    encoder = EncoderAttention(HIDDEN, HIDDEN, HIDDEN, HIDDEN, 1, 257, 0.5)
    assert refused(program_of(encoder, width=257)) == ["heads of 257 elements"]
    assert refused(program_of(msgspec.structs.replace(encoder, head_dim=256), width=256)) == []


def test_attention_to_the_least_similar_keys_is_refused() -> None:
    product, op = attention(1, 1, 16)
    negative = msgspec.structs.replace(op, scale=-0.25)
    group = KVGroup(0, None, 1, 16, (0,))
    assert refused(program_of(product, negative, width=16, groups=(group,))) == ["attention with scale -0.25"]


def test_norms_that_are_too_wide_are_refused() -> None:
    wide = Norm(HIDDEN, HIDDEN, None, 1e-5)
    assert refused(program_of(wide, width=20484)) == ["norms of 20484 elements"]
    assert refused(program_of(wide, width=20480)) == []
    assert refused(program_of(msgspec.structs.replace(wide, heads=2), width=20484)) == []


def test_rotations_of_too_many_pairs_are_refused() -> None:
    rope = Rope(HIDDEN, HIDDEN, 1, 2048, RopeTable((1.0,) * 513))
    assert refused(program_of(rope, width=2048)) == ["rotations of 1026 elements"]


def test_values_of_another_size_than_keys_are_refused() -> None:
    group = KVGroup(0, None, 1, 16, (0,), value_dim=8)
    program = program_of(*attention(1, 1, 16), width=16, groups=(group,))
    assert refused(program) == ["keys of 16 and values of 8 elements"]


def test_index_queries_that_do_not_fit_are_refused() -> None:
    def refused_of(heads: int, head_dim: int) -> list[str]:
        group = KVGroup(0, None, 1, head_dim, (0,), kind="latent")
        widths = {"q": heads * head_dim, "k": head_dim, "weights": heads}
        refs = tuple(TensorRef(name, (width, 16)) for name, width in widths.items())
        linear = Linear(HIDDEN, tuple(widths), refs, (None,) * 3)
        op = Indexer("q", "k", "weights", HIDDEN, 0, 0, heads, head_dim, 16)
        return refused(program_of(linear, op, width=16, groups=(group,)))

    assert refused_of(4, 256) == refused_of(80, 128) == []
    assert refused_of(4, 257) == ["index keys of 257 elements"]
    assert refused_of(81, 128) == ["index queries of 12288 elements"]


def test_keys_of_states_that_are_too_large_are_refused() -> None:
    for op in (gated_delta(1, 1, (257, 4), 2, layer=1), state_space(1, 1, (257, 4), 2, layer=1)):
        bench = Bench(op)
        assert refused(bench.one.program) == ["keys of states of 257 elements"]


def test_too_many_streams_are_refused() -> None:
    def refused_of(streams: int) -> list[str]:
        width = streams * 4
        refs = (TensorRef("fn", (streams, width)), TensorRef("base", (streams,)), TensorRef("scale", (1,)))
        weights = StreamWeights(HIDDEN, "weights", *refs, streams, 1e-6, 1e-6, 0)
        back = Linear("weights", (HIDDEN,), (TensorRef("back", (width, streams)),), (None,))
        return refused(program_of(weights, back, width=width))

    assert refused_of(8) == []
    assert refused_of(9) == ["9 streams of a layer"]


def test_too_many_experts_are_refused() -> None:
    assert refused(lowered(TinyModel(layers=2, experts=1025).plan())) == ["1025 experts of a layer"]
    assert refused(lowered(TinyModel(layers=2, experts=1024).plan())) == []
