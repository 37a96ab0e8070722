from __future__ import annotations

import msgspec
import pytest

from llmd.api import MemoryBudgetError, StageLimits, TensorRef, Weight, WeightData
from llmd.builtin.reference import device as module
from llmd.builtin.reference.device import ReferenceDevice, ReferenceWeights, probe
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
    total = sum(weight.num_bytes for weight in PROGRAM.weights)
    assert seen[-1] == (total, total)


class CountingSource(RandomSource):
    """Counts the weights that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.num_read = 0

    def read(self, weight: Weight) -> WeightData:
        self.num_read += 1
        return super().read(weight)


def test_weights_of_an_earlier_program_are_not_read_again() -> None:
    device, cut = ReferenceDevice(), len(PLAN.parts) // 2
    first, second = (
        lower(PLAN, *bounds, format_of=lambda _kind, _ref: "f32")
        for bounds in ((0, cut), (cut, len(PLAN.parts)))
    )
    have = [device.load(program, RandomSource(), lambda _d, _t: None) for program in (first, second)]
    for given, num_read in (
        ([], len(set(PROGRAM.weights))),
        (have[:1], len(set(PROGRAM.weights) - set(first.weights))),
        (have, 0),
    ):
        source = CountingSource()
        device.load(PROGRAM, source, lambda _d, _t: None, given)
        assert source.num_read == num_read
    assert 0 < len(first.weights) < len(PROGRAM.weights)


def q8_for_matrices(_kind: str, ref: TensorRef) -> str:
    return "q8" if len(ref.shape) == 2 else "f32"


def test_a_matrix_for_other_rows_is_not_shared() -> None:
    device = ReferenceDevice()
    programs = [
        lower(PLAN, 0, len(PLAN.parts), format_of=q8_for_matrices, activations=activations)
        for activations in ("int8", "f32")
    ]
    loaded = [device.load(program, RandomSource(), lambda _d, _t: None) for program in programs]
    mixed = device.load(programs[1], RandomSource(), lambda _d, _t: None, loaded[:1])

    def kinds(weights: ReferenceWeights) -> set[str]:
        return {type(one).__name__ for stack in weights._weights.matrices.values() for one in stack}

    assert kinds(loaded[0]) == {"IntegerMatrix"}
    assert kinds(mixed) == kinds(loaded[1]) == {"PlainMatrix"}


def test_pools_that_do_not_fit_are_refused_with_both_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = ReferenceDevice().load(PROGRAM, RandomSource(), lambda _d, _t: None)
    monkeypatch.setattr(module, "available_bytes", lambda: 1000)
    with pytest.raises(MemoryBudgetError, match="do not fit the 1000 B"):
        parts.stage({0: 8, 1: 8}, StageLimits(4, 1, 4))


def test_memory_is_read_at_some_rate() -> None:
    assert ReferenceDevice().read_rate(0.01) > 0
