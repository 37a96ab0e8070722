"""The row of a plugin shows the last phase that it reached."""

from __future__ import annotations

import pytest

from llmd.api.errors import PluginError
from llmd.host.names import PluginName
from llmd.host.states import Failure, Summary, Verdict, reached, state_of

PLUGIN = PluginName("made", "made", "made-made", "1.0")
PROVIDES = {"backend": ("made",)}
FAILURE = Failure("probe", "the driver crashed", "update it")


def test_nothing_is_known_of_a_plugin_that_was_not_described() -> None:
    state = state_of(PLUGIN, None, None)
    assert (state.state, state.phase, state.provides) == ("unknown", "name", {})


@pytest.mark.parametrize(("verdict", "phase"), [(None, "description"), (Verdict(), "probe")])
def test_a_plugin_is_fine_at_the_last_phase_it_reached(verdict: Verdict | None, phase: str) -> None:
    state = state_of(PLUGIN, Summary(PROVIDES), verdict)
    assert (state.state, state.phase, state.provides) == ("ok", phase, PROVIDES)


def test_a_failed_probe_shows_its_reason_and_fix() -> None:
    state = state_of(PLUGIN, Summary(PROVIDES), Verdict(FAILURE))
    assert (state.state, state.phase) == ("failed", "probe")
    assert (state.reason, state.fix) == ("the driver crashed", "update it")


def test_a_failed_description_outweighs_an_earlier_probe() -> None:
    broken = Failure("description", "cannot be imported", "reinstall it")
    assert state_of(PLUGIN, Summary(failure=broken), Verdict(FAILURE)).reason == "cannot be imported"


def test_phases_follow_each_other() -> None:
    assert [reached(None, None), reached(Summary(), None), reached(Summary(), Verdict())] == [
        "name",
        "description",
        "probe",
    ]


def test_a_failure_becomes_the_error_of_a_plugin_that_was_named() -> None:
    error = FAILURE.error(PLUGIN)
    assert isinstance(error, PluginError)
    assert "made (made-made 1.0)" in error.message
    assert (FAILURE.reason in error.message, error.hint) == (True, FAILURE.fix)
    assert Failure.of("probe", PluginError("why", hint="fix")) == Failure("probe", "why", "fix")
