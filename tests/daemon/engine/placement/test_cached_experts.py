"""Cards that keep some experts in main memory: what they take, and where that is the best choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray

from llmd.api.device import HOST_MEMORY, DeviceProfile
from llmd.api.features import EXPERT_CACHE
from llmd.api.messages import Load, StageSpec
from llmd.api.program import Program
from llmd.cli.plan import lines_of
from llmd.engine.composition import make_host
from llmd.engine.placement.alternatives import compare
from llmd.engine.placement.automatic import with_devices
from llmd.engine.placement.cached_experts import cards_with_cached_experts
from llmd.engine.placement.candidates import Candidate, MachineDevices
from llmd.engine.placement.memory_need import needs_of
from llmd.engine.placement.stages import StageParts, caches_experts, lower_stage
from llmd.engine.placement.typical_request import request_for
from llmd.engine.step_reads import expert_reads
from llmd.models.open_model import OpenModel, open_model
from llmd.models.program_bytes import absent_bytes, expert_bytes
from llmd.placement.seconds import Rows, step_seconds
from llmd.placement.work import work_of
from tests.daemon.engine.placement.tiny_candidates import QUICK, SLOW, candidates
from tests.golden.models.mixtures import qwen3_moe
from tests.serving.machine import machine_of
from tests.serving.model import write_model

FAMILY = partial(qwen3_moe, hidden_size=256, moe_intermediate_size=384, num_experts=32)
BUS = 1.5e9
"""Bytes that a card reads from main memory in a second, half of what it reads from its own."""


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    directory = write_model(tmp_path_factory.mktemp("models") / "m", context_len=1024, family=FAMILY)
    return Load(str(directory), slots=1, chunk_len=32)


@pytest.fixture(scope="module")
def model(load: Load, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenModel]:
    host = make_host(tmp_path_factory.mktemp("probes"))
    opened = open_model(Path(load.directory), host.architectures())
    yield opened
    opened.checkpoint.close()


def card(free_bytes: int = 1 << 30, bus: float = BUS, host_bytes: int = 1 << 30) -> Candidate:
    (one,) = candidates(structs.replace(QUICK, stream_bytes_per_s=bus), free_bytes=free_bytes)
    features = (*one.info.features, EXPERT_CACHE)
    info = structs.replace(one.info, features=features, memory_bytes=free_bytes)
    return structs.replace(one, info=info, host_free_bytes=host_bytes)


def processor(profile: DeviceProfile) -> Candidate:
    (one,) = candidates(profile)
    return structs.replace(one, info=structs.replace(one.info, name="cpu", memory_id=HOST_MEMORY, score=0))


def whole_on(load: Load, model: OpenModel, one: Candidate) -> Program:
    return lower_stage(load, model, one.info, StageParts(one.info.name, 0, len(model.plan.parts)))


def room_for_half(load: Load, model: OpenModel) -> int:
    """Return the memory of a card that has no room for half of the experts."""
    (need,) = needs_of(structs.replace(load, device="d0"), model, lambda _name: card().info).values()
    return need.total_bytes - expert_bytes(whole_on(load, model, card())) // 2


def machine(*devices: Candidate) -> MachineDevices:
    return machine_of([one.info for one in devices], {one.info.name: one.profile for one in devices})


class SimulatedCache:
    """Experts in slots. After a step, the least recently used ones give theirs to missed ones."""

    def __init__(self, program: Program, weights: Sequence[float]) -> None:
        """``weights`` say how often texts use each expert of a layer."""
        (self._reads,) = expert_reads(program)
        self._layers = sum(one.op.kind == "experts" for one in program.ops)
        count = self._layers * self._reads.num_experts
        share = 1.0 - absent_bytes(program) / expert_bytes(program)
        slots = int(share * count)
        self._held = np.zeros(count, np.bool_)
        self._held[np.arange(slots) * count // slots] = True
        self._used_at = np.zeros(count, np.int64)
        self._now = 0
        self._weights = np.array(weights) / sum(weights)
        self._draw = np.random.default_rng(0)

    def missed_bytes(self, rows: int) -> float:
        """Return what a step reads over the bus."""
        self._now += 1
        used = np.concatenate(
            [self._used(rows) + layer * len(self._weights) for layer in range(self._layers)]
        )
        self._used_at[used] = self._now
        missed = used[~self._held[used]]
        oldest = np.flatnonzero(self._held & (self._used_at < self._now))
        victims = oldest[np.argsort(self._used_at[oldest], kind="stable")][: -(-len(missed) // 8)]
        self._held[victims] = False
        self._held[missed[: len(victims)]] = True
        return len(missed) * self._reads.num_bytes / len(self._held)

    def _used(self, rows: int) -> NDArray[np.int64]:
        """Return the experts of a layer that some row uses."""
        count, top_k = len(self._weights), self._reads.top_k
        return np.unique(
            [self._draw.choice(count, top_k, replace=False, p=self._weights) for _ in range(rows)]
        )


def simulated_seconds(load: Load, model: OpenModel, one: Candidate, weights: Sequence[float]) -> float:
    """Return what the request of a plan takes."""
    program, request = whole_on(load, model, one), request_for(model)
    cache, work = SimulatedCache(program, weights), work_of(program, load.kv_dtype)
    middle = Rows(1, 1, request.prompt_len + request.answer_len // 2)
    steps = [*request.prompt_steps(load.chunk_len), *[middle] * request.answer_len]
    return sum(
        one.profile.step_s
        + step_seconds(work, one.profile, rows)
        + cache.missed_bytes(rows.rows) / one.profile.stream_bytes_per_s
        for rows in steps
    )


def test_a_request_takes_as_long_as_predicted_if_texts_use_all_experts(load: Load, model: OpenModel) -> None:
    (found,) = cards_with_cached_experts(load, model, [card(room_for_half(load, model))])
    assert 0.4 < found.load.expert_share < 0.6
    even = simulated_seconds(found.load, model, found.candidate, [1.0] * 32)
    assert found.seconds == pytest.approx(even, rel=0.1)
    few_are_used_often = simulated_seconds(found.load, model, found.candidate, [8.0] * 8 + [1.0] * 24)
    assert few_are_used_often < 0.95 * even


def test_only_cards_without_room_for_all_experts_keep_some_in_main_memory(
    load: Load, model: OpenModel
) -> None:
    half = room_for_half(load, model)
    experts = expert_bytes(whole_on(load, model, card()))
    others = (
        card(),
        card(half - experts),
        card(half, host_bytes=experts - 1),
        card(half, bus=0.0),
        processor(SLOW),
    )
    assert list(cards_with_cached_experts(load, model, others)) == []
    (found,) = cards_with_cached_experts(load, model, [*others, card(half, host_bytes=experts)])
    assert found.candidate.host_free_bytes == experts


def test_main_memory_needs_room_for_all_experts(load: Load, model: OpenModel) -> None:
    one = card(room_for_half(load, model))
    (found,) = cards_with_cached_experts(load, model, [one])
    needs = needs_of(found.load, model, lambda _name: one.info)
    assert needs[HOST_MEMORY].weight_bytes == expert_bytes(whole_on(load, model, one))
    assert needs["m0"].total_bytes <= one.free_bytes


def test_a_card_keeps_all_experts_of_the_layers_that_it_shares_with_others(load: Load) -> None:
    one, host = card().info, structs.replace(processor(SLOW).info, features=(EXPERT_CACHE,))
    both = structs.replace(load, stages=(StageSpec("d0", "embed", "0"), StageSpec("cpu", "1", "head")))
    assert not caches_experts(both, one)
    assert caches_experts(both, host)
    assert caches_experts(structs.replace(load, stages=(StageSpec("d0", "embed", "head"),)), one)


@pytest.mark.parametrize(
    ("bus", "rates", "device"),
    [(BUS, SLOW, "d0"), (1e7, SLOW, "cpu"), (BUS, QUICK, "cpu")],
)
def test_the_fastest_choice_is_taken(
    load: Load, model: OpenModel, bus: float, rates: DeviceProfile, device: str
) -> None:
    """A processor of the rates, or a card that reads half of the experts over the bus."""
    one, host = card(room_for_half(load, model), bus), processor(rates)
    found = with_devices(load, model, machine(one, host))
    compared = compare(load, model, [one, structs.replace(host, free_bytes=1 << 30)])
    cached = next(other for other in compared.alternatives if other.note)
    assert cached.request_s is not None
    if device == "d0":
        assert (found.device, found.stages) == ("d0", ())
        assert 0.4 < found.expert_share < 0.6
        assert compared.best == "d0"
    else:
        assert found.expert_share == 1.0
        assert {one.device for one in found.stages} == {"d0", "cpu"} or found.device == "cpu"
        assert compared.best is not None
        assert "cpu" in compared.best


def test_a_card_alone_reads_experts_rather_than_copy_whole_layers(load: Load, model: OpenModel) -> None:
    one = card(room_for_half(load, model))
    found = with_devices(structs.replace(load, device="d0"), model, machine(one, processor(QUICK)))
    assert (found.device, found.stages) == ("d0", ())
    assert found.expert_share < 1.0


def test_plan_lists_the_choice_with_its_times(load: Load, model: OpenModel) -> None:
    one = card(room_for_half(load, model))
    found = compare(load, model, [one, processor(SLOW)])
    best = found.alternatives[0]
    share = with_devices(load, model, machine(one, processor(SLOW))).expert_share
    note = f"room for {share:.0%} of the experts; steps read the others from main memory"
    assert (found.best, best.name, best.note) == ("d0", "d0", note)
    (cached,) = cards_with_cached_experts(load, model, [one])
    assert best.request_s == pytest.approx(cached.seconds, rel=0.01)
    assert best.stages[0].host_bytes == expert_bytes(whole_on(load, model, one))
    assert best.stages[0].num_bytes <= one.free_bytes
    text = "\n".join(lines_of(found))
    assert f"best; {note}" in text
    assert "IN MAIN MEMORY" in text
    assert "the same as settings: --device d0" in text
    assert [other.name for other in found.alternatives].count("d0") == 1
