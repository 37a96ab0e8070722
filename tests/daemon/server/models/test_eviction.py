from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from llmd.server.models.eviction import Fits, ModelFootprint, NeverFits, Sizes, Unload, Wait, decide


def footprint(name: str, size_bytes: int, **fields: Any) -> ModelFootprint:
    return ModelFootprint(name, {"host": size_bytes}, **fields)


def test_what_fits_needs_nothing() -> None:
    assert decide({"host": 10}, {"host": 12}, [footprint("a", 5)]) == Fits({"host": 2})


def test_the_least_recently_used_goes_first_and_no_more_than_needed() -> None:
    footprints = [
        footprint("new", 5, last_used=3),
        footprint("old", 5, last_used=1),
        footprint("older", 5, last_used=0),
    ]
    assert decide({"host": 10}, {"host": 2}, footprints) == Unload(("older", "old"))
    assert decide({"host": 7}, {"host": 2}, footprints) == Unload(("older",))


def test_models_that_were_to_stay_for_ever_go_last() -> None:
    footprints = [
        footprint("kept", 5, last_used=0, kept_forever=True),
        footprint("other", 5, last_used=9),
    ]
    assert decide({"host": 5}, {"host": 0}, footprints) == Unload(("other",))
    assert decide({"host": 10}, {"host": 0}, footprints) == Unload(("other", "kept"))


def test_a_busy_model_is_waited_for_and_nothing_goes_in_vain() -> None:
    footprints = [footprint("busy", 8, busy=True), footprint("idle", 2)]
    assert decide({"host": 10}, {"host": 0}, footprints) == Wait(("busy",))
    assert decide({"host": 2}, {"host": 0}, footprints) == Unload(("idle",))


def test_what_leaves_anyway_is_waited_for_before_another_goes() -> None:
    footprints = [footprint("leaving", 5, leaving=True), footprint("idle", 5)]
    assert decide({"host": 5}, {"host": 0}, footprints) == Wait(("leaving",))
    assert decide({"host": 6}, {"host": 0}, footprints) == Unload(("idle",))


def test_what_cannot_fit_beside_the_pinned_is_refused() -> None:
    footprints = [footprint("pinned", 6, pinned=True), footprint("busy", 3, busy=True)]
    assert decide({"host": 5}, {"host": 1}, footprints) == NeverFits("host", 4, ("pinned",))
    assert decide({"host": 4}, {"host": 1}, footprints) == Wait(("busy",))


def test_only_models_in_a_memory_that_is_too_full_matter() -> None:
    host, card = ModelFootprint("on_host", {"host": 9}), ModelFootprint("on_card", {"card": 9}, last_used=5)
    assert decide({"host": 1, "card": 5}, {"host": 1, "card": 0}, [host, card]) == Unload(("on_card",))
    busy, leaving = structs.replace(host, busy=True), structs.replace(host, leaving=True, name="leaving")
    waiting = structs.replace(card, busy=True)
    assert decide({"host": 1, "card": 5}, {"host": 1, "card": 0}, [busy, leaving, waiting]) == Wait(
        ("on_card",)
    )
    pinned = [structs.replace(host, pinned=True), structs.replace(card, pinned=True)]
    assert decide({"host": 1, "card": 5}, {"host": 1, "card": 0}, pinned) == NeverFits(
        "card", 0, ("on_card",)
    )


def test_a_model_stays_if_the_others_make_enough_room() -> None:
    small, large = footprint("small", 2, last_used=0), footprint("large", 9, last_used=1)
    assert decide({"host": 9}, {"host": 0}, [small, large]) == Unload(("large",))
    assert decide({"host": 11}, {"host": 0}, [small, large]) == Unload(("small", "large"))


def test_an_unload_frees_what_the_model_held_in_each_memory() -> None:
    both = ModelFootprint("both", {"host": 3, "card": 4})
    assert decide({"host": 3, "card": 4}, {"host": 0, "card": 0}, [both]) == Unload(("both",))
    assert decide({"host": 4, "card": 4}, {"host": 0, "card": 0}, [both]) == NeverFits("host", 3, ())
    assert decide({"card": 5}, {"card": 0}, [both]) == NeverFits("card", 4, ())


MEMORIES = ("host", "card")
TENANTS = st.lists(
    st.builds(
        ModelFootprint,
        name=st.uuids().map(str),
        sizes=st.fixed_dictionaries({}, optional={name: st.integers(0, 20) for name in MEMORIES}),
        last_used=st.integers(0, 9).map(float),
        busy=st.booleans(),
        pinned=st.booleans(),
        leaving=st.booleans(),
        kept_forever=st.booleans(),
    ),
    max_size=6,
)


NEEDS = st.fixed_dictionaries({"host": st.integers(0, 60)}, optional={"card": st.integers(0, 60)})
FREE = st.fixed_dictionaries({name: st.integers(-5, 30) for name in MEMORIES})


@given(need=NEEDS, free=FREE, footprints=TENANTS)
def test_only_idle_models_go_and_then_it_fits(
    need: Sizes, free: Sizes, footprints: list[ModelFootprint]
) -> None:
    decision = decide(need, free, footprints)
    known = {footprint.name: footprint for footprint in footprints}

    def with_models(chosen: Iterable[ModelFootprint]) -> dict[str, int]:
        """What is free without some models."""
        gone = list(chosen)
        return {name: free[name] + sum(one.sizes.get(name, 0) for one in gone) for name in need}

    def fits(room: Sizes) -> bool:
        return all(size <= room[name] for name, size in need.items())

    movable = with_models(one for one in footprints if one.leaving or not one.pinned)
    short = [name for name, size in need.items() if size > free[name]]
    match decision:
        case Fits():
            assert decision.left == {name: free[name] - size for name, size in need.items()}
            assert min(decision.left.values()) >= 0
        case Unload():
            gone = [known[name] for name in decision.names]
            assert not any(one.busy or one.pinned or one.leaving for one in gone)
            leaving = [one for one in footprints if one.leaving]
            assert fits(with_models([*gone, *leaving]))
            for one in gone:
                assert not fits(with_models([*leaving, *(other for other in gone if other is not one)]))
        case Wait():
            assert decision.names
            assert not fits(free)
            assert fits(movable)
            waited = [known[name] for name in decision.names]
            assert all(one.busy or one.leaving for one in waited)
            assert all(any(one.sizes.get(name) for name in short) for one in waited)
        case NeverFits():
            assert need[decision.memory_id] > movable[decision.memory_id] == decision.most_bytes
