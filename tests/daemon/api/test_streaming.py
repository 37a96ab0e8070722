from __future__ import annotations

from msgspec import structs

from llmd.api.program import Program
from llmd.api.streaming import resident_weights, streamed_weights
from llmd.models.lowering import lower
from llmd.testing.plans import TinyModel

PLAN = TinyModel().plan()


def program(*streamed: int, first: int = 0) -> Program:
    return lower(PLAN, first, len(PLAN.parts), format_of=lambda _kind, _ref: "f32", streamed=streamed)


def names(lowered: Program, indices: tuple[int, ...]) -> set[str]:
    return {lowered.weights[index].ref.name for index in indices}


def test_weights_of_a_streamed_part_are_all_that_it_uses() -> None:
    lowered = program(2, 3)
    found = streamed_weights(lowered)
    assert list(found) == [2, 3]
    assert names(lowered, found[2]) == {
        ref.name for op in PLAN.parts[2].ops for ref in op.tensors if ref is not None
    }
    assert sorted((*found[2], *found[3], *resident_weights(lowered))) == list(range(len(lowered.weights)))


def test_without_streamed_parts_all_weights_are_resident() -> None:
    assert streamed_weights(program()) == {}
    assert resident_weights(program()) == tuple(range(len(program().weights)))


def test_weights_that_two_parts_share_are_resident() -> None:
    embed, _, ffn, *_, head = PLAN.parts
    plan = structs.replace(PLAN, parts=(embed, ffn, ffn, head))
    lowered = lower(plan, 0, 4, format_of=lambda _kind, _ref: "f32", streamed=(1, 2))
    assert streamed_weights(lowered) == {1: (), 2: ()}
    assert resident_weights(lowered) == tuple(range(len(lowered.weights)))


def test_a_program_has_the_streamed_parts_of_its_range() -> None:
    lowered = program(1, 4, 5, first=3)
    assert lowered.streamed == (4, 5)
    assert "streams" in lowered.needs
    assert "streams" not in program(1, first=3).needs
