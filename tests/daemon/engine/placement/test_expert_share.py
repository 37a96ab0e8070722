from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs

from llmd.api.device import HOST_MEMORY, DeviceInfo
from llmd.api.features import EXPERT_CACHE, STREAMS
from llmd.api.messages import Load, StageSpec
from llmd.engine.composition import make_host
from llmd.engine.placement.alternatives import compare
from llmd.engine.placement.automatic import with_devices
from llmd.engine.placement.expert_share import ENGINE_BYTES, reading_bytes, share_on, with_expert_share
from llmd.engine.placement.memory_need import MemoryNeed, needs_of
from llmd.engine.placement.stages import StageParts, lower_stage
from llmd.models.open_model import OpenModel, open_model
from llmd.models.program_bytes import expert_bytes
from tests.daemon.engine.placement.tiny_candidates import QUICK, candidates
from tests.golden.models.mixtures import qwen3_moe
from tests.serving.machine import machine_of
from tests.serving.model import write_model

FAMILY = partial(qwen3_moe, hidden_size=256, moe_intermediate_size=384, num_experts=32)
MATRIX_BYTES = 4 * 256 * 384


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    directory = write_model(tmp_path_factory.mktemp("models") / "m", context_len=1024, family=FAMILY)
    return Load(str(directory), device="d0", slots=1, chunk_len=32)


@pytest.fixture(scope="module")
def model(load: Load, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenModel]:
    host = make_host(tmp_path_factory.mktemp("probes"))
    opened = open_model(Path(load.directory), host.architectures())
    yield opened
    opened.checkpoint.close()


def device(memory_bytes: int, *, caches: bool = True) -> DeviceInfo:
    """A device that reads experts from files, since it does not stream weights from main memory."""
    (one,) = candidates(QUICK)
    features = tuple(name for name in one.info.features if name != STREAMS) + (EXPERT_CACHE,) * caches
    return structs.replace(one.info, memory_bytes=memory_bytes, features=features)


def need_of(load: Load, model: OpenModel) -> MemoryNeed:
    (need,) = needs_of(load, model, lambda _name: device(1 << 30)).values()
    return need


def experts_of(load: Load, model: OpenModel) -> int:
    whole = StageParts("d0", 0, len(model.plan.parts))
    return expert_bytes(lower_stage(load, model, device(1 << 30), whole))


def share_in(load: Load, model: OpenModel, memory_bytes: int, *, caches: bool = True) -> float:
    machine = machine_of([device(memory_bytes, caches=caches)], {"d0": QUICK})
    return with_devices(load, model, machine).expert_share


def test_all_experts_are_in_memory_where_there_is_room(load: Load, model: OpenModel) -> None:
    assert share_in(load, model, need_of(load, model).total_bytes) == 1.0


def test_experts_get_what_everything_else_leaves(load: Load, model: OpenModel) -> None:
    need, experts = need_of(load, model), experts_of(load, model)
    room = need.total_bytes - experts // 2
    share = share_in(load, model, room)
    fewer = needs_of(structs.replace(load, expert_share=share), model, lambda _name: device(room))["m0"]
    assert fewer.total_bytes <= room
    assert need.weight_bytes - fewer.weight_bytes == fewer.absent_bytes
    assert fewer.absent_bytes == pytest.approx((1.0 - share) * experts, abs=2)
    left = room - fewer.weight_bytes - fewer.step_bytes
    assert left // 2 >= need.kv_bytes  # the pools get half of it


def test_size_of_the_pools_that_the_user_sets_is_kept_free(load: Load, model: OpenModel) -> None:
    load = structs.replace(load, kv_memory=1 << 20)
    need, experts = need_of(load, model), experts_of(load, model)
    share = share_in(load, model, need.total_bytes - experts // 2)
    assert share == pytest.approx(0.5, abs=0.001)


def test_process_itself_takes_a_part_of_main_memory(load: Load, model: OpenModel) -> None:
    load = structs.replace(load, kv_memory=1 << 20)
    need, experts = need_of(load, model), experts_of(load, model)
    host = structs.replace(device(need.total_bytes - (1 << 18)), memory_id=HOST_MEMORY)
    share = with_devices(load, model, machine_of([host], {"d0": QUICK})).expert_share
    assert share == pytest.approx(1 - ((1 << 18) + ENGINE_BYTES + MATRIX_BYTES) / experts, abs=0.001)


@pytest.mark.parametrize(("quant", "expected"), [(None, MATRIX_BYTES), ("q8", 2 * MATRIX_BYTES)])
def test_reading_takes_the_pages_of_a_matrix_and_its_numbers_if_they_are_converted(
    load: Load, model: OpenModel, quant: str | None, expected: int
) -> None:
    able = structs.replace(device(1 << 30), formats=("f32", "q8"))
    whole = StageParts("d0", 0, len(model.plan.parts))
    program = lower_stage(structs.replace(load, quant=quant), model, able, whole)
    assert reading_bytes(program, model.checkpoint) == expected


def test_model_that_does_not_fit_without_its_experts_stays_as_it_is(load: Load, model: OpenModel) -> None:
    need, experts = need_of(load, model), experts_of(load, model)
    assert share_in(load, model, need.total_bytes - experts) == 1.0
    assert share_in(load, model, need.total_bytes - experts // 2, caches=False) == 1.0


def test_share_that_was_chosen_stays(load: Load, model: OpenModel) -> None:
    machine = machine_of([device(1 << 30)], {"d0": QUICK})
    chosen = structs.replace(load, expert_share=0.25)
    assert with_expert_share(chosen, model, machine) == chosen


def test_stages_of_one_memory_share_the_room(load: Load, model: OpenModel) -> None:
    room = need_of(load, model).total_bytes - experts_of(load, model) // 2
    split = structs.replace(load, stages=(StageSpec("d0", "embed", "1"), StageSpec("d0", "2", "head")))
    share = share_in(split, model, room)
    assert 0.1 < share < 0.5
    need = needs_of(structs.replace(split, expert_share=share), model, lambda _name: device(room))["m0"]
    assert need.total_bytes <= room


def test_plan_shows_the_share_and_its_bytes_if_nothing_else_fits(load: Load, model: OpenModel) -> None:
    experts = experts_of(load, model)
    room = need_of(load, model).total_bytes - experts // 2
    (one,) = candidates(QUICK, free_bytes=room)
    able = structs.replace(one, info=device(room))
    share = share_on(load, model, able)
    found = compare(load, model, [able])
    best = found.alternatives[0]
    assert found.best == best.name == "d0"
    assert (best.request_s, best.problem) == (None, "")
    assert best.note == f"room for {share:.0%} of the experts; steps read the others from the files"
    assert best.stages[0].bytes_by_kind["experts"] == pytest.approx(share * experts, abs=4)
    assert compare(load, model, [one]).best is None
