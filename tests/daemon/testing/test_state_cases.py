from __future__ import annotations

from llmd.testing.state_cases import state_cases


def test_every_case_keeps_a_state_and_has_a_name_of_its_own() -> None:
    cases = list(state_cases())
    assert all(group.kind == "state" for case in cases for group in case.plan.groups)
    assert len({case.name for case in cases}) == len(cases) == 11
    kinds = {op.kind for case in cases for op in case.ops}
    assert kinds == {"recurrence", "gated_delta", "state_space", "linear"}
