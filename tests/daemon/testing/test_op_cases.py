from __future__ import annotations

from llmd.api import KV_DTYPES, PLAIN_FORMATS
from llmd.testing.op_cases import op_cases


def test_every_plain_format_and_kv_dtype_has_a_case() -> None:
    cases = list(op_cases())
    assert {case.format for case in cases} == set(PLAIN_FORMATS)
    assert {case.kv_dtype for case in cases} == set(KV_DTYPES)
    assert any(case.edits and case.masks for case in cases)


def test_sequences_cross_blocks_and_one_is_a_single_token() -> None:
    lengths = sorted(len(ids) for ids in next(iter(op_cases())).tokens)
    assert lengths[0] == 1
    assert lengths[-1] > 2 * 16
