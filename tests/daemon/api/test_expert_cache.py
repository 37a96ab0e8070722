from __future__ import annotations

from llmd.api import Program
from llmd.api.expert_cache import ExpertCacheUse, expert_stacks
from llmd.models.lowering import lower
from llmd.testing.plans import TinyModel


def program_of(model: TinyModel) -> Program:
    plan = model.plan()
    return lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")


def test_uses_of_stages_add_up() -> None:
    assert ExpertCacheUse.sum([]) is None
    uses = [ExpertCacheUse(1, 2, 30, 40), ExpertCacheUse(5, 6, 70, 80)]
    assert ExpertCacheUse.sum(iter(uses)) == ExpertCacheUse(6, 8, 100, 120)


def test_stacks_are_the_matrices_of_experts() -> None:
    program = program_of(TinyModel(experts=4))
    refs = [program.weights[index].ref for index in expert_stacks(program)]
    assert {ref.name.rpartition(".")[2] for ref in refs} == {"gate", "up", "down"}
    assert all(ref.is_stack for ref in refs)
    assert not expert_stacks(program_of(TinyModel()))
