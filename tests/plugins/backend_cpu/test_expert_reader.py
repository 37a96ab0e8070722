"""Experts that are read when steps use them: the same bits, within the given memory, and counted."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from llmd.api import LoadedWeights, MemoryBudgetError, Program, Progress, TensorSource, Weight, WeightData
from llmd.api.expert_cache import ExpertCacheUse
from llmd.models.program_bytes import expert_bytes, with_expert_share
from llmd.testing.expert_cases import expert_cases, integer_case
from llmd.testing.runs import LoadedWorkload, lower_range, run
from llmd.testing.scaled_cases import scaled_cases
from llmd.testing.sources import RandomSource
from llmd.testing.workload import Workload, all_at_once, one_by_one, ragged
from llmd_backend_cpu.device import CpuDevice
from llmd_backend_cpu.weights import CpuWeights

NAMES = ("experts/gated", "experts/one", "experts/all", "experts/limit", "experts/ungated", "experts/bf16")
PLAIN = [case for case in expert_cases() if case.name in NAMES]
CODES = [integer_case(*case) for case in (("q4", 64, 48), ("q4_k", 256, 256), ("mxfp4", 64, 32))]
SCALED = [case for case in scaled_cases() if "experts" in case.name]
CASES = [*PLAIN, *CODES, *SCALED]


def no_progress(_done: int, _total: int) -> None:
    pass


class CachingDevice:
    """A CPU device that keeps a share of the experts of each program in memory."""

    def __init__(self, device: CpuDevice, share: float) -> None:
        self.info = device.info
        self.device = device
        self._share = share
        self.loaded: list[CpuWeights] = []

    def load(
        self,
        program: Program,
        tensors: TensorSource,
        progress: Progress,
        have: Sequence[LoadedWeights] = (),
    ) -> CpuWeights:
        cached = with_expert_share(program, self._share)
        self.loaded.append(self.device.load(cached, tensors, no_progress))
        return self.loaded[-1]

    def use(self) -> ExpertCacheUse:
        use = self.loaded[-1].expert_cache()
        assert use is not None
        return use


class Recorder(RandomSource):
    """A source that notes which weights are expected and given back,
    and at most how many of them were read and not given back.
    """

    def __init__(self) -> None:
        super().__init__()
        self.expected: list[Weight] = []
        self.returned: list[Weight] = []
        self.most_mapped = 0
        self._mapped: set[Weight] = set()

    def read(self, weight: Weight) -> WeightData:
        self._mapped |= {weight} & {*self.expected}
        self.most_mapped = max(self.most_mapped, len(self._mapped))
        return super().read(weight)

    def expect(self, weights: Sequence[Weight]) -> None:
        self.expected += weights

    def give_back(self, weights: Sequence[Weight]) -> None:
        self.returned += weights
        self._mapped -= {*weights}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_results_have_the_same_bits_with_few_experts_in_memory(device: CpuDevice, case: Workload) -> None:
    with LoadedWorkload(device, case) as whole, LoadedWorkload(CachingDevice(device, 0.4), case) as few:  # type: ignore[arg-type]
        for schedule in (all_at_once(case), ragged(case)):
            expected, mine = whole.run(schedule), few.run(schedule)
            assert mine.rows.keys() == expected.rows.keys()
            for place, row in expected.rows.items():
                np.testing.assert_array_equal(mine.rows[place], row)


def test_experts_take_no_more_memory_than_is_given(device: CpuDevice) -> None:
    case = integer_case("q8", 512, 256)
    caching = CachingDevice(device, 0.5)
    with LoadedWorkload(caching, case) as loaded:  # type: ignore[arg-type]
        loaded.run(ragged(case))
        use, unfilled = caching.use(), caching.loaded[-1].unfilled_bytes
    whole = expert_bytes(lower_range(device, case, case.first_part, case.last_part))
    assert 0 < use.held_bytes <= whole // 2
    assert use.held_bytes + unfilled <= whole // 2
    assert use.misses > 6  # some were read more than once
    assert use.read_bytes == use.misses * use.held_bytes // 3  # three of six fit


def test_least_recently_used_experts_are_given_back_first(device: CpuDevice) -> None:
    case = msgspec.structs.replace(integer_case("q8", 512, 256), tokens=((1,) * 40,))
    caching = CachingDevice(device, 0.999)  # room for five of six
    with LoadedWorkload(caching, case) as loaded:  # type: ignore[arg-type]
        loaded.run(one_by_one(case))
        use = caching.use()
    assert use.hits + use.misses == 80  # two for each row
    assert use.hits > use.misses


def test_files_are_told_what_is_read(device: CpuDevice) -> None:
    case, source = PLAIN[0], Recorder()
    caching = CachingDevice(device, 0.5)
    with LoadedWorkload(caching, case, source=source) as loaded:  # type: ignore[arg-type]
        loaded.run(all_at_once(case))
        misses = caching.use().misses
    assert source.returned == source.expected
    assert len(source.expected) == 3 * misses  # gate, up and down
    assert source.most_mapped == 1
    assert all(weight.ref.members is not None for weight in source.expected)


def test_error_of_a_file_ends_the_step_and_the_next_one_reads_again(device: CpuDevice) -> None:
    class Failing(RandomSource):
        fails = True

        def expect(self, weights: Sequence[Weight]) -> None:
            if self.fails:
                raise OSError("the disk is gone")

        def give_back(self, weights: Sequence[Weight]) -> None:
            pass

    case, source = PLAIN[0], Failing()
    caching = CachingDevice(device, 0.5)
    expected = run(device, case, all_at_once(case))
    with LoadedWorkload(caching, case, source=source) as loaded:  # type: ignore[arg-type]
        with pytest.raises(OSError, match="the disk is gone"):
            loaded.run(all_at_once(case))
        assert caching.use().held_bytes == 0
        source.fails = False
        mine = loaded.run(all_at_once(case))
    for place, row in expected.rows.items():
        np.testing.assert_array_equal(mine.rows[place], row)


def test_memory_for_less_than_an_expert_is_refused(device: CpuDevice) -> None:
    case = integer_case("q8", 512, 256)
    with pytest.raises(MemoryBudgetError, match=r"an expert of .* does not fit"):
        run(CachingDevice(device, 0.1), case, all_at_once(case))  # type: ignore[arg-type]


def test_weights_and_their_reader_end_together(device: CpuDevice) -> None:
    source = Recorder()
    program = lower_range(device, PLAIN[0], PLAIN[0].first_part, PLAIN[0].last_part)
    weights = device.load(with_expert_share(program, 0.5), source, no_progress)
    weights.close()
    del weights
    gc.collect()
    assert not [one for one in gc.get_referrers(source) if type(one).__name__ == "ExpertReader"]
