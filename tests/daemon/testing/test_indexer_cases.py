"""The cases of chosen positions choose some of many, all, and those of a window."""

from __future__ import annotations

import msgspec

from llmd.api import Attention, Indexer
from llmd.api.checks import missing_features, missing_ops
from llmd.builtin.reference.device import ReferenceDevice, describe
from llmd.testing.indexer_cases import indexer_cases
from llmd.testing.runs import lower_range

CASES = {case.name: case for case in indexer_cases()}


def test_rows_have_more_positions_than_are_chosen_except_in_one_case() -> None:
    for name, case in CASES.items():
        (top_k,) = (op.top_k for op in case.ops if isinstance(op, Indexer))
        assert (max(map(len, case.tokens)) > top_k) == (name != "indexer/all-f32")


def test_every_attention_reads_what_an_indexer_chose() -> None:
    attentions = [[op for op in case.ops if isinstance(op, Attention)] for case in CASES.values()]
    assert all(op.chosen == "chosen" for ops in attentions for op in ops)
    assert {len(ops) for ops in attentions} == {1, 2}


def test_a_device_without_indexers_refuses_them_by_name() -> None:
    case, info = CASES["indexer/shared"], describe()
    program = lower_range(ReferenceDevice(), case, case.first_part, case.last_part)
    lacking = msgspec.structs.replace(
        info,
        ops=tuple(kind for kind in info.ops if kind != "indexer"),
        features=tuple(name for name in info.features if name != "chosen_positions"),
    )
    refused = [*missing_features(lacking, program), *missing_ops(lacking, program)]
    assert [one.what for one in refused] == ["feature chosen_positions", "op indexer"]
    assert not missing_features(info, program)
