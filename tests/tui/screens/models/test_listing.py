from __future__ import annotations

from datetime import UTC, datetime

import pytest

from llmd_tui.daemon.access import Event
from llmd_tui.screens.models.listing import ListedModel, current, listing, time_left
from llmd_tui.state.daemon_state import DaemonState, Loading
from tests.tui.screens.models.model_answers import GIB, served, stored
from tests.tui.scripted_daemon import model


def state_after(*events: tuple[str, dict[str, object]]) -> DaemonState:
    state = DaemonState()
    for number, (kind, fields) in enumerate(events):
        state.apply(Event(kind, number, fields), float(number))
    return state


def test_stored_models_have_what_is_known_of_the_loaded_ones() -> None:
    found = listing(
        {"models": [stored("guide", builtin=True, state="loaded")]},
        {"models": [served("guide", aliases=["a"], users=2)]},
    ).models["guide"]
    assert (found.size_bytes, found.memory_bytes, found.format) == (2 * GIB, 3 * GIB, "bf16")
    assert (found.context_len, found.devices, found.aliases) == (4096, ("cpu",), ("a",))
    assert (found.state, found.users, found.is_served) == ("loaded", 2, True)


def test_models_served_from_elsewhere_are_listed_too() -> None:
    found = listing({"models": []}, {"models": [served("mine")]}).models["mine"]
    assert (found.origin, found.format, found.size_bytes) == ("/models/mine", "q4", 2 * GIB)


def test_running_pulls_are_listed() -> None:
    steps = [{"status": "pulling manifest"}]
    assert listing({"pulls": [{"name": "org/x", "steps": steps}]}, {}).pulls == {"org/x": steps}


def test_a_load_is_told_by_the_routes_and_by_the_events() -> None:
    progress = {"phase": "weights", "done": 1, "total": 2}
    found = listing({"models": [stored("x", state="loading", loading=progress)]}, {}).models["x"]
    assert found.loading == Loading("weights", 1, 2)
    state = state_after(
        ("model", {"model": "x", "phase": "loading", "step": "warm up", "done": 2, "total": 2})
    )
    assert current(found, state).loading == Loading("warm up", 2, 2)


def test_events_are_newer_than_the_listing() -> None:
    failed = ListedModel("x", state="failed", reason="no memory", is_served=True)
    loaded = state_after(("snapshot", {"models": [model("x")]}))
    assert (current(failed, loaded).state, current(failed, loaded).reason) == ("loaded", "")
    failing = state_after(("snapshot", {"models": [model("x", "failed")]}))
    assert current(failed, failing).reason == "no memory"
    assert current(failed, DaemonState()).state == "unloaded"
    unused = ListedModel("y", reason="broken")
    assert current(unused, loaded) == unused


def test_a_derived_model_has_the_state_of_its_base() -> None:
    derived = ListedModel("pirate", base="guide")
    assert current(derived, state_after(("snapshot", {"models": [model("guide")]}))).state == "loaded"
    assert derived.engine_name == "guide"


@pytest.mark.parametrize(
    ("changes", "origin", "removable"),
    [
        ({"builtin": True}, "built in", False),
        ({"source": "org/x", "commit": "0123456789"}, "org/x@01234567", True),
        ({"source": "org/x"}, "org/x", True),
        ({"base": "guide"}, "derived from guide", True),
        ({"directory": "/mine"}, "/mine", False),
    ],
)
def test_the_origin_decides_what_may_be_removed(
    *, changes: dict[str, object], origin: str, removable: bool
) -> None:
    found = ListedModel(**{"name": "x", **changes})  # type: ignore[arg-type]
    assert (found.origin, found.is_removable) == (origin, removable)


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, ""), (999, "999"), (4_000_000, "4M"), (1_235_814_400, "1.24B"), (2 * 10**12, "2T")],
)
def test_parameters_have_three_digits(number: int, words: str) -> None:
    assert ListedModel("x", num_parameters=number).parameters == words


def test_the_time_that_an_idle_model_stays_is_told() -> None:
    now = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
    left = ListedModel("x", expires_at="2026-11-20T12:04:30+00:00")
    assert time_left(left, now) == "4 min left"
    assert time_left(ListedModel("x", expires_at="2026-11-20T12:00:30+00:00"), now) == "30 s left"
    assert time_left(ListedModel("x", expires_at="2026-11-20T11:00:00+00:00"), now) == "0 s left"
    assert time_left(ListedModel("x", users=1, expires_at=None)) == "answers"
    assert time_left(ListedModel("x", users=3)) == "answers 3"
    assert time_left(ListedModel("x")) == ""
