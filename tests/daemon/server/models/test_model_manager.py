from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest
from msgspec import structs

from llmd.api import HOST_MEMORY
from llmd.api.errors import CheckpointError, MemoryBudgetError
from llmd.engine.placement.candidates import Room
from llmd.engine.placement.memory_need import MemoryNeed
from llmd.server.engines.supervisor import Admit
from llmd.server.errors import UnavailableError
from llmd.server.models.model_leases import ModelLeases
from llmd.server.models.model_manager import ModelManager
from llmd.server.models.served_model import ServedModel
from tests.serving.model_managers import KEEP_ALIVE_S, BareModel, Timers, bare, bare_model, residents_of

A, B, C = Path("a"), Path("b"), Path("c")


def slow_model(name: str, directory: Path, leases: ModelLeases, admit: Admit) -> ServedModel:
    return cast("ServedModel", BareModel(name, directory, leases, admit, loads_at_once=False))


def sized(_directory: Path) -> MemoryNeed:
    return MemoryNeed(weight_bytes=50, kv_bytes=10, most_kv_bytes=30, devices=("cpu",))


async def settle() -> None:
    """Run every task until it blocks."""
    for _ in range(30):
        await asyncio.sleep(0)


async def load(manager: ModelManager, name: str) -> BareModel:
    """Load a model and report its size."""
    model = bare(await manager.serve(name, Path(name)))
    await settle()
    model.sizes = {HOST_MEMORY: 60}
    return model


async def test_requests_that_come_together_load_a_model_once() -> None:
    manager = residents_of()
    first = bare(await manager.serve("a", A))
    first.never_loaded = True
    second, third = await asyncio.gather(manager.serve("a", A), manager.serve("a", A))
    assert second is third
    assert bare(second) is not first


async def test_a_model_is_unloaded_when_nobody_has_used_it_for_long_enough() -> None:
    timers = Timers()
    manager = residents_of(timers=timers)
    model = await load(manager, "a")
    timers.go_on(KEEP_ALIVE_S - 1)
    with model.in_use():
        timers.go_on(KEEP_ALIVE_S)
        assert manager.served
    timers.go_on(KEEP_ALIVE_S)
    assert manager.served == {}
    await settle()
    assert (model.closed, model.spooled) == ([None], True)


async def test_loading_is_a_use_even_when_the_one_who_asked_has_left() -> None:
    timers = Timers()
    manager = residents_of(slow_model, timers=timers)
    model = await load(manager, "a")
    with model.in_use(0):
        pass
    timers.go_on(KEEP_ALIVE_S)
    assert manager.served
    model.finish_loading()
    await settle()
    timers.go_on(0)
    assert manager.served == {}


async def test_a_request_that_comes_while_the_model_leaves_loads_it_anew() -> None:
    timers = Timers()
    manager = residents_of(limit_bytes=100, need=sized, timers=timers)
    old = await load(manager, "a")
    old.finish_closing.clear()
    timers.go_on(KEEP_ALIVE_S)
    new = bare(await manager.serve("a", A))
    await settle()
    assert new is not old
    assert new.loaded is None  # both do not fit at once
    old.finish_closing.set()
    await settle()
    assert new.loaded


async def test_a_model_that_loads_can_be_unloaded() -> None:
    manager = residents_of(slow_model)
    model = await load(manager, "a")
    await manager.unload("a")
    assert (manager.served, model.closed) == ({}, [None])


async def test_the_least_recently_used_makes_room() -> None:
    timers = Timers()
    manager = residents_of(limit_bytes=130, need=sized, timers=timers)
    a = await load(manager, "a")
    timers.go_on(1)
    b = await load(manager, "b")
    timers.go_on(1)
    with a.in_use():
        pass
    await load(manager, "c")
    assert set(manager.served) == {"a", "c"}
    assert (a.closed, b.closed) == ([], [None])


async def test_a_busy_model_is_never_unloaded_but_waited_for() -> None:
    manager = residents_of(limit_bytes=100, need=sized)
    busy = await load(manager, "a")
    with busy.in_use():
        waiting = await load(manager, "b")
        assert (waiting.loaded, busy.closed) == (None, [])
        assert waiting.leases.waits_for == ("a",)
    await settle()
    assert (bool(waiting.loaded), busy.closed) == (True, [None])
    assert not waiting.leases.waits_for


async def test_waiting_for_busy_models_ends_with_an_error_that_says_for_whom() -> None:
    manager = residents_of(limit_bytes=100, need=sized, wait_s=0.0)
    busy = await load(manager, "a")
    with busy.in_use():
        late = await load(manager, "b")
        with pytest.raises(UnavailableError, match="b does not fit into memory together with a") as caught:
            await late.ready()
    assert caught.value.code == "model_busy"
    assert caught.value.retry_after_s


async def test_what_cannot_fit_is_refused_with_the_arithmetic_and_nothing_goes() -> None:
    manager = residents_of(limit_bytes=100, need=sized)
    pinned = await load(manager, "a")
    pinned.leases.pin()
    other = await manager.serve("b", B)
    with pytest.raises(
        MemoryBudgetError,
        match=r"needs 60 B \(50 B of weights, 10 B of .*\), but at most 40 B can be made available \(pinned: a\)",
    ):
        await bare(other).ready()
    assert pinned.closed == []


async def test_a_model_larger_than_all_memory_is_refused_without_a_limit_too() -> None:
    manager = residents_of(available=59, need=sized)
    model = await manager.serve("a", A)
    with pytest.raises(MemoryBudgetError, match="59 B can be made available"):
        await bare(model).ready()


async def test_models_that_load_at_once_do_not_share_the_same_bytes() -> None:
    manager = residents_of(slow_model, available=100, need=sized)
    first, second = await load(manager, "a"), await load(manager, "b")
    first.finish_loading()
    second.finish_loading()
    await settle()
    assert (bool(first.loaded), bool(second.loaded)) == (True, True)
    assert first.closed == [None]  # the second had to wait until the first was loaded and idle


async def test_within_a_limit_keys_and_values_get_half_of_what_is_left() -> None:
    manager = residents_of(limit_bytes=100, need=sized)
    assert (await load(manager, "a")).granted == {"cpu": 50 + 30}
    assert (await load(residents_of(limit_bytes=64, need=sized), "a")).granted == {"cpu": 50 + 12}
    assert (await load(residents_of(available=100, need=sized), "a")).granted == {}


async def test_what_cannot_be_measured_is_left_to_the_engine() -> None:
    def broken(_directory: Path) -> MemoryNeed:
        raise CheckpointError("is damaged", file="model.safetensors")

    manager = residents_of(limit_bytes=0, need=broken)
    assert (await load(manager, "a")).loaded


async def test_closing_ends_every_model_with_the_reason() -> None:
    manager = residents_of()
    models = [await load(manager, name) for name in ("a", "b")]
    reason = UnavailableError("ending", code="c")
    await manager.close(reason)
    assert [model.closed for model in models] == [[reason], [reason]]
    assert manager.served == {}


async def test_closing_hurries_those_that_keep_their_caches() -> None:
    timers = Timers()
    manager = residents_of(timers=timers)
    model = await load(manager, "a")
    model.finish_closing.clear()
    timers.go_on(KEEP_ALIVE_S)
    await settle()
    before = model.hurried
    closing = asyncio.Task(manager.close(UnavailableError("ending", code="c")))
    await settle()
    assert (before, model.hurried) == (False, True)
    model.finish_closing.set()
    await closing


async def test_a_model_that_waits_for_the_memory_of_one_that_leaves_hurries_it() -> None:
    timers = Timers()
    manager = residents_of(timers=timers, limit_bytes=100, need=sized)
    leaving = await load(manager, "a")
    leaving.finish_closing.clear()
    timers.go_on(KEEP_ALIVE_S)
    coming = bare(await manager.serve("b", B))
    await settle()
    assert (leaving.hurried, coming.loaded) == (True, None)
    leaving.finish_closing.set()
    await settle()
    assert coming.loaded


async def test_who_is_told_to_leave_keeps_no_cache() -> None:
    manager = residents_of()
    model = await load(manager, "a")
    await manager.unload("a")
    assert not model.spooled


async def test_models_keep_the_loader_they_were_given() -> None:
    assert (await residents_of(bare_model).serve("c", C)).directory == C


def on_card(directory: Path) -> dict[str, MemoryNeed]:
    """A model of 20 in the memory of a card of 30, with 1 in main memory. ``main`` is 20 in main memory."""
    if directory == Path("main"):
        return {HOST_MEMORY: MemoryNeed(20, 0, 0)}
    card = MemoryNeed(15, 4, 8, step_bytes=1, memory_bytes=30, devices=("cuda:0",))
    return {"card": card, HOST_MEMORY: MemoryNeed(1, 0, 0, devices=("cpu",))}


async def load_on_card(manager: ModelManager, name: str) -> BareModel:
    model = bare(await manager.serve(name, Path(name)))
    await settle()
    model.sizes = {HOST_MEMORY: 20} if name == "main" else {"card": 20, HOST_MEMORY: 1}
    return model


async def test_a_model_on_a_card_needs_no_main_memory_for_what_is_there() -> None:
    model = await load_on_card(residents_of(available=1, need=on_card), "a")
    assert model.loaded
    assert model.granted == {}


async def test_models_on_different_memories_do_not_evict_each_other() -> None:
    timers = Timers()
    manager = residents_of(available=21, need=on_card, timers=timers)
    main = await load_on_card(manager, "main")
    timers.go_on(1)
    first = await load_on_card(manager, "a")
    timers.go_on(1)
    await load_on_card(manager, "b")
    assert set(manager.served) == {"main", "b"}
    assert (main.closed, first.closed) == ([], [None])


async def test_what_a_card_cannot_hold_is_refused_with_its_name() -> None:
    def too_large(_directory: Path) -> dict[str, MemoryNeed]:
        return {"card": MemoryNeed(25, 4, 8, step_bytes=2, memory_bytes=30)}

    model = bare(await residents_of(need=too_large).serve("a", A))
    with pytest.raises(
        MemoryBudgetError, match=r"a needs 31 B in memory card \(25 B .*\), but at most 30 B can .*--split"
    ):
        await model.ready()


async def test_a_model_may_take_what_others_take_that_can_be_unloaded() -> None:
    rooms: list[Room] = []
    manager = residents_of(available=40, need=on_card, rooms=rooms)
    await load_on_card(manager, "main")
    await load_on_card(manager, "a")
    manager.served["a"].leases.pin()
    await load_on_card(manager, "b")
    assert [room(HOST_MEMORY, 0) for room in rooms] == [40, 40, 39]
    assert [room("card", 30) for room in rooms] == [30, 30, 10]


async def test_a_limit_of_a_card_is_divided_like_that_of_main_memory() -> None:
    def limited(directory: Path) -> dict[str, MemoryNeed]:
        needs = on_card(directory)
        return {**needs, "card": structs.replace(needs["card"], limit_bytes=24)}

    manager = residents_of(need=limited)
    assert (await load_on_card(manager, "a")).granted == {"cuda:0": 16 + 4 + 2}
    await load_on_card(manager, "b")
    assert set(manager.served) == {"b"}


async def test_models_that_load_at_once_do_not_share_the_bytes_of_a_card() -> None:
    manager = residents_of(slow_model, need=on_card)
    first, second = await load_on_card(manager, "a"), await load_on_card(manager, "b")
    first.finish_loading()
    second.finish_loading()
    await settle()
    assert first.closed == [None]  # the second had to wait until the first was loaded and idle
    assert second.loaded


async def test_only_a_model_whose_memory_is_needed_is_hurried() -> None:
    timers = Timers()
    manager = residents_of(timers=timers, available=22, need=on_card)
    on_host, before = await load_on_card(manager, "main"), await load_on_card(manager, "a")
    for model in (on_host, before):
        model.finish_closing.clear()
    timers.go_on(KEEP_ALIVE_S)
    coming = await load_on_card(manager, "b")
    assert (on_host.hurried, before.hurried, coming.loaded) == (False, True, None)
    for model in (on_host, before):
        model.finish_closing.set()
    await settle()
    assert coming.loaded
