from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llmd.server.models.eviction import Fits, ModelFootprint, NeverFits, Unload, Wait, decide


def test_what_fits_needs_nothing() -> None:
    assert decide(10, 12, [ModelFootprint("a", 5)]) == Fits(2)


def test_the_least_recently_used_goes_first_and_no_more_than_needed() -> None:
    footprints = [
        ModelFootprint("new", 5, last_used=3),
        ModelFootprint("old", 5, last_used=1),
        ModelFootprint("older", 5, last_used=0),
    ]
    assert decide(10, 2, footprints) == Unload(("older", "old"))
    assert decide(7, 2, footprints) == Unload(("older",))


def test_models_that_were_to_stay_for_ever_go_last() -> None:
    footprints = [
        ModelFootprint("kept", 5, last_used=0, kept_forever=True),
        ModelFootprint("other", 5, last_used=9),
    ]
    assert decide(5, 0, footprints) == Unload(("other",))
    assert decide(10, 0, footprints) == Unload(("other", "kept"))


def test_a_busy_model_is_waited_for_and_nothing_goes_in_vain() -> None:
    footprints = [ModelFootprint("busy", 8, busy=True), ModelFootprint("idle", 2)]
    assert decide(10, 0, footprints) == Wait(("busy",))
    assert decide(2, 0, footprints) == Unload(("idle",))


def test_what_leaves_anyway_is_waited_for_before_another_goes() -> None:
    footprints = [ModelFootprint("leaving", 5, leaving=True), ModelFootprint("idle", 5)]
    assert decide(5, 0, footprints) == Wait(("leaving",))
    assert decide(6, 0, footprints) == Unload(("idle",))


def test_what_cannot_fit_beside_the_pinned_is_refused() -> None:
    footprints = [ModelFootprint("pinned", 6, pinned=True), ModelFootprint("busy", 3, busy=True)]
    assert decide(5, 1, footprints) == NeverFits(4, ("pinned",))
    assert decide(4, 1, footprints) == Wait(("busy",))


TENANTS = st.lists(
    st.builds(
        ModelFootprint,
        name=st.uuids().map(str),
        size_bytes=st.integers(0, 20),
        last_used=st.integers(0, 9).map(float),
        busy=st.booleans(),
        pinned=st.booleans(),
        leaving=st.booleans(),
        kept_forever=st.booleans(),
    ),
    max_size=6,
)


@given(need=st.integers(0, 60), free=st.integers(-5, 30), footprints=TENANTS)
def test_only_idle_models_go_and_then_it_fits(need: int, free: int, footprints: list[ModelFootprint]) -> None:
    decision = decide(need, free, footprints)
    known = {footprint.name: footprint for footprint in footprints}
    movable = free + sum(
        footprint.size_bytes for footprint in footprints if footprint.leaving or not footprint.pinned
    )
    leaving = sum(footprint.size_bytes for footprint in footprints if footprint.leaving)
    match decision:
        case Fits():
            assert decision.left_bytes == free - need >= 0
        case Unload():
            gone = [known[name] for name in decision.names]
            assert not any(footprint.busy or footprint.pinned or footprint.leaving for footprint in gone)
            assert need <= free + leaving + sum(footprint.size_bytes for footprint in gone)
        case Wait():
            assert decision.names
            assert free < need <= movable
            assert all(known[name].busy or known[name].leaving for name in decision.names)
        case NeverFits():
            assert need > movable == decision.most_bytes
