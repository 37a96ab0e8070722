from __future__ import annotations

from llmd.testing.time_mix_cases import time_mix_cases


def test_every_case_keeps_a_state_and_has_a_name_of_its_own() -> None:
    cases = list(time_mix_cases())
    assert all(group.kind == "state" for case in cases for group in case.plan.groups)
    assert len({case.name for case in cases}) == len(cases) == 7
    kinds = {op.kind for case in cases for op in case.ops}
    assert kinds == {"token_shift", "generalized_delta", "add", "linear"}
