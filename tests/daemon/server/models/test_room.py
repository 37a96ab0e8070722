from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llmd.server.models.room import Enough, Never, Tenant, Unload, Wait, make_room


def test_what_fits_needs_nothing() -> None:
    assert make_room(10, 12, [Tenant("a", 5)]) == Enough(2)


def test_the_least_recently_used_goes_first_and_no_more_than_needed() -> None:
    tenants = [Tenant("new", 5, last_used=3), Tenant("old", 5, last_used=1), Tenant("older", 5, last_used=0)]
    assert make_room(10, 2, tenants) == Unload(("older", "old"))
    assert make_room(7, 2, tenants) == Unload(("older",))


def test_models_that_were_to_stay_for_ever_go_last() -> None:
    tenants = [Tenant("kept", 5, last_used=0, for_ever=True), Tenant("other", 5, last_used=9)]
    assert make_room(5, 0, tenants) == Unload(("other",))
    assert make_room(10, 0, tenants) == Unload(("other", "kept"))


def test_a_busy_model_is_waited_for_and_nothing_goes_in_vain() -> None:
    tenants = [Tenant("busy", 8, busy=True), Tenant("idle", 2)]
    assert make_room(10, 0, tenants) == Wait(("busy",))
    assert make_room(2, 0, tenants) == Unload(("idle",))


def test_what_leaves_anyway_is_waited_for_before_another_goes() -> None:
    tenants = [Tenant("leaving", 5, leaving=True), Tenant("idle", 5)]
    assert make_room(5, 0, tenants) == Wait(("leaving",))
    assert make_room(6, 0, tenants) == Unload(("idle",))


def test_what_cannot_fit_beside_the_pinned_is_refused() -> None:
    tenants = [Tenant("pinned", 6, pinned=True), Tenant("busy", 3, busy=True)]
    assert make_room(5, 1, tenants) == Never(4, ("pinned",))
    assert make_room(4, 1, tenants) == Wait(("busy",))


TENANTS = st.lists(
    st.builds(
        Tenant,
        name=st.uuids().map(str),
        size_bytes=st.integers(0, 20),
        last_used=st.integers(0, 9).map(float),
        busy=st.booleans(),
        pinned=st.booleans(),
        leaving=st.booleans(),
        for_ever=st.booleans(),
    ),
    max_size=6,
)


@given(need=st.integers(0, 60), free=st.integers(-5, 30), tenants=TENANTS)
def test_only_idle_models_go_and_then_it_fits(need: int, free: int, tenants: list[Tenant]) -> None:
    decision = make_room(need, free, tenants)
    known = {tenant.name: tenant for tenant in tenants}
    movable = free + sum(tenant.size_bytes for tenant in tenants if tenant.leaving or not tenant.pinned)
    leaving = sum(tenant.size_bytes for tenant in tenants if tenant.leaving)
    match decision:
        case Enough():
            assert decision.left_bytes == free - need >= 0
        case Unload():
            gone = [known[name] for name in decision.names]
            assert not any(tenant.busy or tenant.pinned or tenant.leaving for tenant in gone)
            assert need <= free + leaving + sum(tenant.size_bytes for tenant in gone)
        case Wait():
            assert decision.names
            assert free < need <= movable
            assert all(known[name].busy or known[name].leaving for name in decision.names)
        case Never():
            assert need > movable == decision.most_bytes
