from __future__ import annotations

from llmd.registry.name_matching import matching


def test_an_alias_may_stand_for_many_names() -> None:
    aliases = {"claude-*": "alpha", "claude-3": "beta", "*": "beta"}
    assert matching("claude-sonnet-4-5[1m]", aliases, ["alpha", "beta"]) == ["alpha"]
    assert matching("claude-3", aliases, ["alpha", "beta"]) == ["beta"]
    assert matching("alpha", aliases, ["alpha", "beta"]) == ["alpha"]
    assert matching("claude-", {"claude-*": "alpha"}, ["alpha"]) == ["alpha"]
    assert matching("cl", {"claude-*": "alpha"}, ["alpha"]) == []


def test_exact_names_win_over_prefixes() -> None:
    assert matching("alpha", {}, ["alpha", "alphabet"]) == ["alpha"]
    assert matching("a", {}, ["alpha", "alphabet"]) == ["alpha", "alphabet"]
    assert matching("g", {"gpt": "alpha", "gpt-4": "alpha"}, ["alpha"]) == ["alpha"]


def test_nothing_begins_with_an_empty_name() -> None:
    assert matching("", {}, ["alpha"]) == []
