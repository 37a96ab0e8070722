"""Attention to chosen positions has the bits of ordinary attention if all positions are chosen."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from llmd.api import Attention, Device, Indexer, Op
from llmd.builtin.reference.device import ReferenceDevice
from llmd.testing.indexer_cases import indexer_cases
from llmd.testing.runs import run
from llmd.testing.workload import Workload, ragged
from llmd_backend_cpu.device import CpuDevice

CASES = {case.name: case for case in indexer_cases()}
DEVICES: dict[str, Callable[[], Device]] = {
    "cpu": CpuDevice,
    "generic": lambda: CpuDevice("generic", 3),
    "reference": ReferenceDevice,
}


def without_choice(case: Workload) -> Workload:
    """Return the case without its indexer."""
    ops = (
        msgspec.structs.replace(op, chosen=None) if isinstance(op, Attention) else op
        for op in case.ops
        if not isinstance(op, Indexer)
    )
    return with_ops(case, tuple(ops))


def choosing(case: Workload, top_k: int) -> Workload:
    """Return the case with another number of chosen positions."""
    ops = (msgspec.structs.replace(op, top_k=top_k) if isinstance(op, Indexer) else op for op in case.ops)
    return with_ops(case, tuple(ops))


def with_ops(case: Workload, ops: tuple[Op, ...]) -> Workload:
    """Return the case with other ops."""
    parts = [*case.plan.parts]
    parts[case.first_part] = msgspec.structs.replace(parts[case.first_part], ops=ops)
    return msgspec.structs.replace(case, plan=msgspec.structs.replace(case.plan, parts=tuple(parts)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["indexer/odd-f16", "indexer/long-f16"])
def test_all_positions_give_the_bits_of_ordinary_attention(device: str, name: str) -> None:
    opened = DEVICES[device]()
    whole = choosing(CASES[name], 1100)
    schedule = ragged(whole)
    chosen, plain = (run(opened, case, schedule).rows for case in (whole, without_choice(whole)))
    assert chosen.keys() == plain.keys()
    assert all(np.array_equal(chosen[place], plain[place]) for place in plain)
    limited = run(opened, CASES[name], schedule).rows
    assert any(not np.array_equal(limited[place], plain[place]) for place in plain)
