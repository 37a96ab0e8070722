"""What shaders cannot run is refused before weights are loaded."""

from __future__ import annotations

import msgspec

from llmd.api import (
    HIDDEN,
    Adapt,
    Attention,
    Experts,
    Indexer,
    Instruction,
    KVGroup,
    Program,
    SlottedOp,
    StreamWeights,
    TensorRef,
    Weight,
)
from llmd.api.state_ops import GatedDelta
from llmd.testing.adapter_cases import low_rank
from llmd_backend_vulkan.limits import refusals
from tests.plugins.backend_vulkan.test_step_memory import program


def with_attention(head_dim: int, group: KVGroup) -> Program:
    """Return a program of one attention op."""
    op = Attention(HIDDEN, "k", "v", HIDDEN, 0, 0, 2, 2, head_dim, 1.0)
    slotted = SlottedOp(op, (0, 1, 2), (3,), kv_layer=0)
    return msgspec.structs.replace(
        program(), groups=(group,), instructions=(Instruction((slotted,), 0, (3,)),)
    )


def test_the_small_model_is_not_refused() -> None:
    assert refusals(program()) == []


def test_wide_heads_are_refused_once() -> None:
    of = with_attention(608, KVGroup(0, None, 2, 608, (0, 1)))
    (refusal,) = refusals(msgspec.structs.replace(of, instructions=of.instructions * 2))
    assert "608" in refusal.what
    assert "576" in refusal.reason


def test_values_of_another_size_are_refused() -> None:
    (refusal,) = refusals(with_attention(64, KVGroup(0, None, 2, 64, (0,), value_dim=32)))
    assert "values of 32" in refusal.what


def test_index_keys_that_are_too_large_are_refused() -> None:
    def refused(head_dim: int) -> list[str]:
        group = KVGroup(0, None, 1, head_dim, (0,), kind="latent")
        slotted = SlottedOp(Indexer("q", "k", "w", "c", 0, 0, 2, head_dim, 9), (0, 1, 2), (3,), kv_layer=0)
        instruction = Instruction((slotted,), 0, (3,))
        of = msgspec.structs.replace(program(), groups=(group,), instructions=(instruction,) * 2)
        return [refusal.what for refusal in refusals(of)]

    assert refused(256) == []
    assert refused(257) == ["index keys of 257 elements"]


def test_unknown_formats_are_refused() -> None:
    odd = Weight(TensorRef("w", (4, 4)), "q7")
    (refusal,) = refusals(msgspec.structs.replace(program(), weights=(odd,)))
    assert refusal.what == "format q7"


def test_more_experts_than_shared_memory_has_room_for_are_refused() -> None:
    up, down = TensorRef("up", (1025, 8, 16), is_stack=True), TensorRef("down", (1025, 16, 8), is_stack=True)
    op = Experts(HIDDEN, "r", HIDDEN, None, up, down, "silu", 2)
    slotted = SlottedOp(op, (0, 1), (2,), (None, None, 0, None, 1, None))
    of = msgspec.structs.replace(program(), instructions=(Instruction((slotted,), 0, (2,)),))
    (refusal,) = refusals(of)
    assert refusal.what == "1025 experts of a layer"


def test_more_streams_than_a_work_group_mixes_are_refused() -> None:
    def refused(streams: int) -> list[str]:
        weight, bias, scale = TensorRef("fn", (4, 64)), TensorRef("base", (4,)), TensorRef("scale", (3,))
        op = StreamWeights(HIDDEN, "w", weight, bias, scale, streams, 1e-6, 1e-6, 20)
        instruction = Instruction((SlottedOp(op, (0,), (1,), (None,) * 3),), 0, (1,))
        of = msgspec.structs.replace(program(), instructions=(instruction,) * 2)
        return [refusal.what for refusal in refusals(of)]

    assert refused(8) == []
    assert refused(9) == ["9 streams of hidden states"]


def test_adapters_whose_matrices_may_need_two_buffers_are_refused() -> None:
    weight = TensorRef("w", (1 << 14, 32))
    slotted = [
        SlottedOp(Adapt(HIDDEN, ("y",), ("y",), ((low_rank(weight, rank),),)), (0, 1), (1,))
        for rank in (1 << 10, (1 << 10) + 1)
    ]
    fitting, larger = (
        msgspec.structs.replace(program(), instructions=(Instruction((one,), 0, (1,)),)) for one in slotted
    )
    assert refusals(fitting) == []
    (refusal,) = refusals(larger)
    assert "64 MiB" in refusal.reason


def test_wider_keys_than_a_thread_has_registers_for_are_refused() -> None:
    q, k, v = (TensorRef(name, (width, 1, 4)) for name, width in (("q", 257), ("k", 257), ("v", 8)))
    vectors = TensorRef("rates", (1,)), TensorRef("bias", (1,))
    op = GatedDelta("q", "k", "v", "d", "b", HIDDEN, q, k, v, *vectors, 0, 0, 1, 1, 257, 8)
    slotted = SlottedOp(op, (0, 0, 0, 0, 0), (0,), (None,) * 5, kv_layer=0)
    of = msgspec.structs.replace(program(), instructions=(Instruction((slotted,), 0, (0,)),))
    (refusal,) = refusals(of)
    assert refusal.what == "keys of 257 elements"
