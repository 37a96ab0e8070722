from __future__ import annotations

from llmd.testing.program_cases import part_cases, program_cases


def test_parts_cover_the_whole_plan() -> None:
    cases = list(part_cases())
    assert [(case.first_part, case.last_part) for case in cases] == [
        (i, i + 1) for i in range(len(cases[0].plan.parts))
    ]


def test_programs_run_past_the_window() -> None:
    for case in program_cases():
        windows = [group.window for group in case.plan.groups if group.window]
        assert all(max(len(ids) for ids in case.tokens) > 2 * window for window in windows)


def test_encoders_run_a_text_beyond_a_chunk_of_keys_and_both_token_types() -> None:
    encoders = [case for case in program_cases() if case.runs_whole_sequences]
    assert max(len(ids) for case in encoders for ids in case.tokens) > 512
    assert any(case.token_types for case in encoders)
    assert {case.format for case in encoders} == {"f32", "f16", "bf16", "q8"}
