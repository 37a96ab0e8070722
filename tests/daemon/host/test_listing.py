"""A listing shows stored states and imports no plugin."""

from __future__ import annotations

import sys

from llmd.host.cache import Cache
from llmd.host.fingerprint import machine_fingerprint, plugin_fingerprint, probe_fingerprint
from llmd.host.listing import commands_of, known_commands, known_states, known_summary, missing_states
from llmd.host.names import PluginName
from llmd.host.plugin_host import PluginHost
from llmd.host.states import DESCRIPTION, PROBE, Failure, Summary, Verdict
from tests.plugin_sites import Site

SUMMARY = Summary({"backend": ("hangs",), "command": ("greet",)}, {"greet": "Say hello."})


def store(cache: Cache, plugin: PluginName, summary: Summary) -> None:
    cache.put(DESCRIPTION, plugin.key, plugin_fingerprint(plugin), summary)


def test_a_plugin_nobody_looked_at_is_unknown(site: Site, cache: Cache) -> None:
    (state,) = known_states(site.install("raises_on_import"), cache, "")
    assert (state.name, state.state) == ("raises", "unknown")
    assert "trial_raises" not in sys.modules


def test_shows_the_stored_description_and_probe(site: Site, cache: Cache) -> None:
    (plugin,) = site.install("hangs")
    store(cache, plugin, SUMMARY)
    failure = Failure("probe", "it hung", "wake it")
    cache.put(PROBE, plugin.key, probe_fingerprint(plugin, machine_fingerprint(), "trial"), Verdict(failure))
    (state,) = known_states([plugin], cache, "trial")
    assert (state.state, state.phase, state.reason, state.fix) == ("failed", "probe", "it hung", "wake it")
    assert known_states([plugin], cache, "another trial")[0].state == "ok"


def test_what_was_stored_of_other_files_does_not_count(site: Site, cache: Cache) -> None:
    (plugin,) = site.install("hangs")
    store(cache, plugin, SUMMARY)
    assert known_summary(plugin, cache) == SUMMARY
    (site.folder / "trial_hangs.py").write_text("")
    assert known_summary(plugin, cache) is None


def test_conflicts_are_shown_too(site: Site, cache: Cache) -> None:
    plugins = site.install("twin_one", "twin_two")
    for plugin in plugins:
        store(cache, plugin, Summary({"backend": ("twin",)}))
    first, second = known_states(plugins, cache, "")
    assert (first.state, second.state) == ("ok", "failed")
    assert "trial-twin-one" in second.reason


def test_verbs_are_known_once_every_plugin_was_described(site: Site, cache: Cache) -> None:
    plugins = site.install("hangs", "segfaults")
    store(cache, plugins[0], SUMMARY)
    assert known_commands(plugins, cache) is None
    store(cache, plugins[1], Summary(failure=Failure("description", "broken", "fix it")))
    assert known_commands(plugins, cache) == {"greet": "Say hello."}


def test_a_verb_of_a_plugin_that_is_set_aside_is_none(site: Site) -> None:
    plugins = site.install("hangs", "segfaults")
    assert commands_of(dict.fromkeys(plugins, SUMMARY)) == {"greet": "Say hello."}
    assert (
        commands_of({plugins[0]: Summary(SUMMARY.provides, SUMMARY.commands, Failure("description", "", ""))})
        == {}
    )


def test_a_plugin_that_the_user_disabled_has_that_state(site: Site, cache: Cache) -> None:
    plugins = site.install("twin_one", "twin_two")
    host = PluginHost(plugins, cache)
    host.plugins()
    disabled = ["twin-one"]
    one, two = known_states(plugins, cache, "", disabled)
    assert (one.state, one.fix) == ("disabled", "run `llmd plugins enable twin-one`")
    assert two.state == "ok", "the name is free"


def test_what_an_upgrade_removed_is_missing(site: Site) -> None:
    plugins = site.install("twin_one")
    (row,) = missing_states({"trial-twin-one": "x", "made-gone": "/wheels/gone.whl"}, plugins)
    assert (row.name, row.state) == ("made-gone", "missing")
    assert "llmd plugins install /wheels/gone.whl" in row.fix
