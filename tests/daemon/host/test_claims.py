"""The first plugin keeps a name; the other is disabled entirely."""

from __future__ import annotations

from llmd.host.claims import settle
from llmd.host.names import PluginName
from llmd.host.states import Failure, Summary

ONE = PluginName("one", "one", "made-one", "1.0")
TWO = PluginName("two", "two", "made-two", "2.0")
THREE = PluginName("three", "three", "made-three", "3.0")


def test_the_second_claim_of_a_name_fails_and_names_both_distributions() -> None:
    settled = settle([(ONE, Summary({"backend": ("x",)})), (TWO, Summary({"backend": ("x",)}))])
    assert settled[ONE].failure is None
    failure = settled[TWO].failure
    assert failure is not None
    assert "made-one 1.0" in failure.reason
    assert "made-two 2.0" in failure.reason
    assert "backend 'x'" in failure.reason
    assert "made-two" in failure.fix


def test_a_plugin_that_loses_one_name_registers_none() -> None:
    settled = settle([
        (ONE, Summary({"backend": ("x",)})),
        (TWO, Summary({"transport": ("y",), "backend": ("x",)})),
        (THREE, Summary({"transport": ("y",)})),
    ])  # fmt: skip
    assert settled[TWO].failure is not None
    assert settled[THREE].failure is None


def test_a_failed_plugin_claims_nothing() -> None:
    broken = Summary({"backend": ("x",)}, failure=Failure("description", "broken", "fix"))
    settled = settle([(ONE, broken), (TWO, Summary({"backend": ("x",)}))])
    assert settled[ONE] == broken
    assert settled[TWO].failure is None


def test_kinds_do_not_share_names() -> None:
    settled = settle([(ONE, Summary({"backend": ("x",)})), (TWO, Summary({"command": ("x",)}))])
    assert settled[TWO].failure is None


def test_a_built_in_plugin_is_not_to_be_uninstalled() -> None:
    core = PluginName("reference", "m", "llmd-daemon", "0.1.0")
    failure = settle([(core, Summary({"backend": ("x",)})), (TWO, Summary({"backend": ("x",)}))])[TWO].failure
    assert failure is not None
    assert failure.fix == "run `llmd plugins uninstall made-two`"
