from __future__ import annotations

import msgspec
import pytest

from llmd.api import MemoryBudgetError, StageLimits, Weight
from llmd.builtin.reference import device as module
from llmd.builtin.reference.device import ReferenceDevice, probe
from llmd.models.lowering import lower
from llmd.testing.plans import TinyModel
from llmd.testing.sources import RandomSource

PLAN = TinyModel().plan()
PROGRAM = lower(PLAN, 0, len(PLAN.parts), format_of=lambda _kind, _ref: "f32")


def test_probe_finds_one_usable_device_that_others_are_preferred_to() -> None:
    (info,) = probe()
    assert (info.name, info.score, info.row_exact) == ("reference", 1, True)
    assert info.memory_bytes > 0


def test_a_format_that_it_lacks_is_refused_by_name() -> None:
    weights = (*PROGRAM.weights, Weight(PROGRAM.weights[0].ref, "q7"))
    refusals = ReferenceDevice().check(msgspec.structs.replace(PROGRAM, weights=weights))
    assert [refusal.what for refusal in refusals] == ["format q7"]
    assert ReferenceDevice().check(PROGRAM) == []


def test_loading_reports_progress_to_the_end() -> None:
    seen: list[tuple[int, int]] = []
    ReferenceDevice().load(PROGRAM, RandomSource(), lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(PROGRAM.weights), len(PROGRAM.weights))


def test_pools_that_do_not_fit_are_refused_with_both_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = ReferenceDevice().load(PROGRAM, RandomSource(), lambda _d, _t: None)
    monkeypatch.setattr(module, "available_bytes", lambda: 1000)
    with pytest.raises(MemoryBudgetError, match="do not fit the 1000 B"):
        parts.stage({0: 8, 1: 8}, StageLimits(4, 1, 4))


def test_benchmark_measures_every_format() -> None:
    profile = ReferenceDevice().benchmark(0.06)
    assert set(profile.decode_bytes_per_s) == {"f32", "f16", "bf16", "q8"}
    assert (
        min(profile.read_bytes_per_s, profile.prefill_flops_per_s, *profile.decode_bytes_per_s.values()) > 0
    )
