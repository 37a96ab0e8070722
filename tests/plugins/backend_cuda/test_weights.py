"""Weights by their use, what several programs share, and how much memory a stage takes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

import msgspec
import numpy as np
import pytest

from llmd.api import (
    Format,
    KVDtype,
    MemoryBudgetError,
    ModelPlan,
    Program,
    StageLimits,
    Weight,
    WeightData,
    kv_block_bytes,
)
from llmd.builtin.architectures import deepseek_v4, deepseek_v32
from llmd.models.headless import without_head
from llmd.models.lowering import lower
from llmd.models.plain_formats import to_float32
from llmd.testing.compressed_cases import compressed_cases
from llmd.testing.encoder_plan import TinyEncoder
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource
from llmd.testing.stream_cases import stream_cases
from llmd_backend_cuda.weights import CudaWeights, load_weights, weight_uses
from tests.cuda.simulated import NEEDS_COMPILER, SimulatedCard, contents, load, lowered
from tests.golden.models.catalog import tiny_model
from tests.plugins.backend_cuda.bench import LIMITS, Bench, one

pytestmark = NEEDS_COMPILER

TINY = TinyModel(layers=2)
MIXTURE = TinyModel(layers=3, hybrid=True, states="matrices", experts=5)
COMPRESSED = deepseek_v4.plan(tiny_model("deepseek-v4").config, 512)
PLANS: dict[str, tuple[ModelPlan, int, int | None]] = {
    "whole": (TINY.plan(), 0, None),
    "embedding": (TINY.plan(), 0, 1),
    "layer": (TINY.plan(), 1, 3),
    "head": (TINY.plan(), 5, None),
    "headless": (without_head(TINY.plan()), 0, None),
    "hybrid": (TinyModel(hybrid=True).plan(), 0, None),
    "mixture": (MIXTURE.plan(), 0, None),
    "encoder": (TinyEncoder().plan(), 0, None),
    "large vocabulary": (TinyModel(layers=1, vocab=30000, window=None).plan(), 0, None),
    "long context": (TinyModel(layers=2, context_len=8192).plan(), 0, None),
}


class Recorder(RandomSource):
    """Random weights, and the names of those that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def read(self, weight: Weight) -> WeightData:
        self.names.append(weight.ref.name)
        return super().read(weight)


class TiedSource(RandomSource):
    """Random weights, of which the head has the values of the embedding."""

    def read(self, weight: Weight) -> WeightData:
        if weight.ref.name == "head":
            weight = Weight(msgspec.structs.replace(weight.ref, name="embed"), weight.format)
        return super().read(weight)


def weight_of(program: Program, name: str) -> Weight:
    return next(weight for weight in program.weights if weight.ref.name == name)


# Uses


def test_factors_are_matrices_lookups_are_tables_and_the_rest_are_vectors() -> None:
    program = lowered(TinyModel(hybrid=True).plan())
    uses = weight_uses(program)
    expected: Mapping[str, set[str]] = {
        "embed": {"table"},
        "head": {"matrix"},
        "norm": {"vector"},
        "layers.0.qkv": {"matrix"},
        "layers.0.bias.q": {"vector"},
        "layers.0.q_norm": {"vector"},
        "layers.1.norm2.bias": {"vector"},
        "layers.2.decay": {"vector"},
        "layers.0.down": {"matrix"},
    }
    found = {name: uses[program.weights.index(weight_of(program, name))] for name in expected}
    assert found == expected


def test_the_matrix_of_streams_is_a_table() -> None:
    program = lowered(COMPRESSED)
    uses = weight_uses(program)
    expected: Mapping[str, set[str]] = {
        "layers.1.hc_attn_fn": {"table"},
        "layers.1.hc_attn_base": {"vector"},
        "layers.1.hc_attn_scale": {"vector"},
        "layers.1.attn.compressor.ape": {"vector"},
        "layers.0.ffn.gate.tid2eid": {"table"},
    }
    found = {name: uses[program.weights.index(weight_of(program, name))] for name in expected}
    assert found == expected


def test_the_matrices_of_experts_are_read_one_at_a_time_and_that_of_a_router_as_a_table() -> None:
    program, source = lowered(TinyModel(layers=1, experts=3).plan()), Recorder()
    stack, router = (weight_of(program, f"layers.0.{name}") for name in ("experts.down", "router"))
    loaded = load(SimulatedCard(), program, source).loaded
    assert source.names.count("layers.0.experts.down") == loaded.matrices[stack].size.members == 3
    assert router in loaded.tables
    assert router not in loaded.matrices


def test_a_tied_table_is_also_a_matrix() -> None:
    program = lowered(TinyModel(layers=1, tied=True).plan())
    weight = weight_of(program, "embed")
    assert weight_uses(program)[program.weights.index(weight)] == {"table", "matrix"}
    source = Recorder()
    loaded = load(SimulatedCard(), program, source).loaded
    assert weight in loaded.tables
    assert weight in loaded.matrices
    assert weight not in loaded.vectors
    assert source.names.count("embed") == 1


def test_a_tied_table_is_computed_as_two_equal_weights_are() -> None:
    tied = Bench(plan=TinyModel(layers=1, tied=True).plan())
    twice = Bench(plan=TinyModel(layers=1).plan(), source=TiedSource())
    np.testing.assert_array_equal(tied.logits(one(3)), twice.logits(one(3)))


@pytest.mark.parametrize("name", ["f32", "f16", "bf16"])
def test_vectors_are_float32_on_the_card(name: Format) -> None:
    plan = TINY.plan()
    program = lower(plan, 1, 2, format_of=lambda _kind, _ref: name)
    card = SimulatedCard()
    loaded = load(card, program).loaded
    for tensor in ("layers.0.norm1", "layers.0.bias.v"):
        weight = weight_of(program, tensor)
        expected = to_float32(RandomSource().read(weight).data, name)
        np.testing.assert_array_equal(contents(card, loaded.vectors[weight], np.float32), expected)


@pytest.mark.parametrize("name", ["f32", "f16", "bf16"])
def test_tables_are_on_the_card_as_they_are_in_the_file(name: Format) -> None:
    program = lower(TINY.plan(), 0, 1, format_of=lambda _kind, _ref: name)
    card = SimulatedCard()
    (found,) = load(card, program).loaded.tables.values()
    assert found.format == found.table.format == name
    data = RandomSource().read(program.weights[0]).data
    np.testing.assert_array_equal(contents(card, found.memory, np.uint8), data.view(np.uint8).reshape(-1))


# Loading


def test_progress_counts_the_bytes_of_weights() -> None:
    calls: list[tuple[int, int]] = []
    program = lowered(TINY.plan(), 1, 3)
    load_weights(SimulatedCard(), program, RandomSource(), lambda *call: calls.append(call), ())
    sizes = [weight.num_bytes for weight in program.weights]
    assert calls == [(done, sum(sizes)) for done in accumulate(sizes)]


def test_what_other_programs_have_is_shared() -> None:
    card, source = SimulatedCard(), Recorder()
    first = load(card, lowered(TINY.plan(), 0, 3), source)
    used, read = card.used_bytes, len(source.names)
    both = load(card, lowered(TINY.plan(), 0, 5), source, [first])
    second_layer = {name for name in source.names if name.startswith("layers.1.")}
    assert set(source.names[read:]) == second_layer
    for kept in ("matrices", "tables", "vectors"):
        mine, other = getattr(both.loaded, kept), getattr(first.loaded, kept)
        assert all(mine[weight] is other[weight] for weight in other)
    del mine, other
    again = card.used_bytes
    load(card, lowered(TINY.plan(), 0, 5), source, [first, both])
    assert card.used_bytes == again
    both.close()
    assert card.used_bytes == used


def test_what_is_shared_stays_until_all_its_owners_are_closed() -> None:
    card = SimulatedCard()
    first = load(card, lowered(TINY.plan()))
    used = card.used_bytes
    second = load(card, lowered(TINY.plan()), have=[first])
    first.close()
    assert card.used_bytes == used
    bench = Bench(card)
    bench.weights, bench.stage = second, second.stage({0: 4, 1: 4}, LIMITS)
    np.testing.assert_array_equal(bench.logits(one(3)), Bench().logits(one(3)))
    bench.stage.close()
    second.close()
    assert card.used_bytes == 0


def test_streamed_weights_are_shared_and_taken_from_the_card_if_they_are_there() -> None:
    card, source = SimulatedCard(), Recorder()
    resident = load(card, lowered(TINY.plan()), source)
    read = len(source.names)
    streamed = load(card, lowered(TINY.plan(), streamed=(1, 2)), source, [resident])
    again = load(card, lowered(TINY.plan(), streamed=(1, 2)), source, [streamed])
    assert len(source.names) == read
    assert again.loaded.streamed.keys() == streamed.loaded.streamed.keys() != set()
    for key, mine in again.loaded.streamed.items():
        assert mine is streamed.loaded.streamed[key]
    bench, expected = Bench(card), Bench().logits(one(3))
    for weights in (streamed, again):
        bench.stage = weights.stage({0: 4, 1: 4}, LIMITS)
        np.testing.assert_array_equal(bench.logits(one(3)), expected)


def test_weights_that_were_streamed_are_read_when_they_move_to_the_card() -> None:
    card, source = SimulatedCard(), Recorder()
    streamed = load(card, lowered(TINY.plan(), streamed=(1,)), source)
    layer = {weight.ref.name for weight, _ in streamed.loaded.streamed}
    source.names.clear()
    bench = Bench(card)
    bench.weights = load(card, lowered(TINY.plan()), source, [streamed])
    assert set(source.names) == layer
    bench.stage = bench.weights.stage({0: 4, 1: 4}, LIMITS)
    np.testing.assert_array_equal(bench.logits(one(3)), Bench().logits(one(3)))


def test_a_table_is_read_for_the_use_that_is_missing() -> None:
    card, plan = SimulatedCard(), TinyModel(layers=1, tied=True).plan()
    first = load(card, lowered(plan, 0, 1))
    both = load(card, lowered(plan), have=[first])
    weight = weight_of(lowered(plan), "embed")
    assert both.loaded.tables[weight] is first.loaded.tables[weight]
    assert weight in both.loaded.matrices


def test_weights_that_do_not_fit_are_refused_and_leave_nothing() -> None:
    card, program = SimulatedCard(), lowered(TINY.plan())
    loaded = load(card, program)
    needed = card.used_bytes
    loaded.close()
    card.memory_bytes = needed - 1
    with pytest.raises(MemoryBudgetError):
        load(card, program)
    assert card.used_bytes == 0


def test_closed_weights_make_no_stage_and_share_nothing() -> None:
    loaded = load(SimulatedCard(), lowered(TINY.plan()))
    loaded.close()
    loaded.close()
    for call in (
        lambda: loaded.stage({0: 1, 1: 1}, LIMITS),
        lambda: load(SimulatedCard(), lowered(TINY.plan()), have=[loaded]),
    ):
        with pytest.raises(ValueError, match="these weights are closed"):
            call()


# Bytes


def pool_bytes(loaded: CudaWeights, program: Program, blocks: Mapping[int, int], kv_dtype: KVDtype) -> int:
    return sum(
        blocks[group.id] * loaded.kv_bytes(group.id, kv_dtype) for group in program.groups if group.layers
    )


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize(
    "limits",
    [
        StageLimits(max_rows=1, max_sequences=1, max_outputs=1, tickets=1),
        StageLimits(max_rows=20, max_sequences=4, max_outputs=30, kv_dtype="int8", tickets=3),
        StageLimits(max_rows=100, max_sequences=16, max_outputs=16, kv_dtype="bf16"),
        StageLimits(max_rows=100, max_sequences=16, max_outputs=16, kv_dtype="int4"),
    ],
)
def test_a_stage_takes_the_memory_that_was_announced(name: str, limits: StageLimits) -> None:
    plan, first, last = PLANS[name]
    check_announced(lowered(plan, first, last), limits)


@pytest.mark.parametrize("kv_dtype", ["f32", "f16"])
def test_the_scores_of_indexers_are_announced(kv_dtype: KVDtype) -> None:
    program = lowered(deepseek_v32.plan(tiny_model("deepseek-v32").config, 3000))
    limits = StageLimits(max_rows=100, max_sequences=16, max_outputs=16, kv_dtype=kv_dtype)
    check_announced(program, limits)


@pytest.mark.parametrize("name", ["merge_attention/chosen-f16", "mix_streams/4-20"])
def test_parts_of_vectors_and_products_of_streams_are_announced(name: str) -> None:
    case = next(case for case in (*compressed_cases(), *stream_cases()) if case.name == name)
    program = lowered(case.plan, case.first_part, case.last_part)
    check_announced(program, StageLimits(max_rows=100, max_sequences=16, max_outputs=16, kv_dtype="f16"))


@pytest.mark.parametrize(("kv_dtype", "size"), [("f32", 4), ("f16", 2)])
def test_blocks_of_compressed_attention_have_parts_and_fewer_vectors(kv_dtype: KVDtype, size: int) -> None:
    program = lowered(COMPRESSED)
    loaded = load(SimulatedCard(), program)
    parts, index = program.groups[1], program.groups[4]
    assert loaded.kv_bytes(parts.id, kv_dtype) == len(parts.layers) * 16 * parts.head_dim * size
    assert loaded.kv_bytes(index.id, kv_dtype) == len(index.layers) * 4 * 32 * size, "24 elements take 32"


def check_announced(program: Program, limits: StageLimits) -> None:
    card = SimulatedCard()
    loaded = load(card, program)
    before, blocks = card.used_bytes, {group.id: 2 + group.id for group in program.groups}
    stage = loaded.stage(blocks, limits)
    pools = pool_bytes(loaded, program, blocks, limits.kv_dtype)
    taken = card.used_bytes - before - pools
    announced = loaded.step_bytes(limits)
    assert taken <= announced <= 1.5 * taken + (1 << 20)
    stage.close()
    assert card.used_bytes == before


def test_a_block_has_all_layers_of_its_group_and_padding() -> None:
    program = lowered(TinyModel(hybrid=True, layers=8).plan())
    loaded = load(SimulatedCard(), program)
    for group in program.groups[:2]:
        for kv_dtype in ("f16", "bf16", "int8", "int4"):
            assert kv_block_bytes(group, kv_dtype) <= loaded.kv_bytes(group.id, kv_dtype)
        assert loaded.kv_bytes(group.id, "f16") == 2 * 2 * 16 * 2 * 32 * 2, "12 elements take 32"
    states = program.groups[2]
    assert loaded.kv_bytes(2, "f16") == len(states.layers) * states.state_bytes


def test_weights_live_as_long_as_a_stage_uses_them() -> None:
    """Else a kernel would read memory that was freed: an error that makes a card unusable."""
    bench = Bench()
    loaded, card = bench.weights, bench.card
    loaded.close()
    del bench.weights, loaded
    np.testing.assert_array_equal(bench.logits(one(3)), Bench().logits(one(3)))
    bench.stage.close()
    assert card.used_bytes == 0
