"""A broken plugin does not affect the others; if the user named it, it is an error."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest

from llmd.api.errors import DeviceError, NotFoundError, PluginError
from llmd.host.cache import Cache
from llmd.host.plugin_host import PluginHost
from llmd.host.states import PluginState
from tests.plugin_sites import Site

COMMAND = """
from llmd.api import Command, hookimpl
LLMD_API = 2

@hookimpl
def llmd_commands():
    return [Command("greet", "Say hello.", load)]

def load():
    import click
    return click.Command("greet", help="Say hello.")
"""
KINDS = """
from llmd.api import Architecture, Dialect, Parser, Transport, hookimpl
LLMD_API = 2

@hookimpl
def llmd_architectures():
    return [Architecture(("made", "MadeForCausalLM"), print)]

@hookimpl
def llmd_transports():
    return [Transport("pigeon", print, print)]

@hookimpl
def llmd_dialects():
    return [Dialect("klingon", list)]

@hookimpl
def llmd_parsers():
    return [Parser("runes", "calls", len, dict)]
"""
FAILS_TO_OPEN = """
from llmd.api import Backend, DeviceError, DeviceInfo, hookimpl
LLMD_API = 2

@hookimpl
def llmd_backends():
    return [Backend("made", probe, open_device)]

def probe():
    return [DeviceInfo("made", "toy", 0, 1, ("f32",), ("f32",), (), reason="it is unplugged")]

def open_device(name, options):
    raise {error}
"""
SLEEPS = """
from pathlib import Path
from llmd.api import Backend, DeviceInfo, hookimpl
LLMD_API = 2

@hookimpl
def llmd_backends():
    return [Backend("made", probe, Device)]

def probe():
    awake = Path(__file__).with_name("awake").exists()
    return [DeviceInfo("made", "toy", int(awake), 1, ("f32",), ("f32",), ())]

class Device:
    def __init__(self, name, options):
        pass

    def close(self):
        pass
"""


def host(site: Site, cache: Cache) -> PluginHost:
    return PluginHost(site.plugins(), cache)


def by_name(states: tuple[PluginState, ...]) -> dict[str, PluginState]:
    return {state.name: state for state in states}


def test_every_broken_plugin_has_its_reason_and_the_good_one_works(
    site: Site, cache: Cache, example: Path
) -> None:
    site.install_project(example)
    site.install("raises_on_import", "segfaults", "hangs", "other_contract", "twin_one", "twin_two")
    plugins = host(site, cache)
    assert [device.info.name for device in plugins.devices() if device.ok] == ["example"]
    states = by_name(plugins.plugins())
    assert {name for name, state in states.items() if state.state == "ok"} == {"example", "twin-one"}
    assert "the toolkit was built for another driver" in states["raises"].reason
    assert "SIGSEGV (Segmentation fault)" in states["segfaults"].reason
    assert "did not finish within 6 s" in states["hangs"].reason
    assert "contract 99, but this llmd has 2" in states["other"].reason
    assert "trial-twin-two 1.0 claims the backend 'twin', which trial-twin-one" in states["twin-two"].reason
    assert all(state.fix for state in states.values() if state.state == "failed")
    assert set(plugins.backends()) == {"example", "twin"}


def test_a_plugin_of_the_first_contract_is_refused_by_name_and_the_others_run(
    site: Site, cache: Cache
) -> None:
    site.write("old", SLEEPS.replace("LLMD_API = 2", "LLMD_API = 1"))
    site.write("made", SLEEPS)
    (site.folder / "awake").touch()
    plugins = host(site, cache)
    assert plugins.choose_device("auto").info.name == "made"
    with pytest.raises(PluginError, match="built for plugin contract 1, but this llmd has 2") as caught:
        plugins.choose_device("old")
    assert (
        caught.value.hint
        == "run `llmd plugins install --upgrade made-old`, or run `llmd plugins uninstall made-old`"
    )


def test_a_plugin_may_know_features_that_this_llmd_does_not(site: Site, cache: Cache) -> None:
    later = SLEEPS.replace("int(awake)", "1").replace("())]", '(), features=("of_tomorrow",))]')
    site.write("made", later)
    assert host(site, cache).choose_device("made").info.features == ("of_tomorrow",)


def test_backends_of_plugins_that_failed_before_they_named_a_device_are_told(
    site: Site, cache: Cache, example: Path
) -> None:
    site.install_project(example)
    site.install("raises_on_import", "segfaults", "twin_one", "twin_two")
    site.write("kinds", KINDS)
    site.write("rival", KINDS)
    plugins = host(site, cache)
    plugins.devices()
    failed = {backend.plugin.name: backend for backend in plugins.failed_backends()}
    assert {name: backend.name for name, backend in failed.items()} == {
        "raises": "raises",
        "segfaults": "segfaults",
        "twin-two": "twin",
    }
    assert "SIGSEGV" in failed["segfaults"].failure.reason


def test_a_failed_plugin_that_the_user_names_is_an_error_with_its_reason(site: Site, cache: Cache) -> None:
    site.install("raises_on_import", "segfaults")
    plugins = host(site, cache)
    with pytest.raises(PluginError, match="built for another driver"):
        plugins.choose_device("raises")
    for name in ("segfaults", "segfaults:0"):
        with pytest.raises(PluginError, match="SIGSEGV") as caught:
            plugins.choose_device(name)
        assert caught.value.hint


def test_a_device_that_cannot_be_used_says_why_when_named(site: Site, cache: Cache) -> None:
    site.write("made", FAILS_TO_OPEN)
    plugins = host(site, cache)
    with pytest.raises(PluginError, match="it is unplugged"):
        plugins.choose_device("made")
    assert plugins.find_device("made").reason == "it is unplugged"


def test_an_unknown_device_is_not_found_and_the_usable_ones_are_named(
    site: Site, cache: Cache, example: Path
) -> None:
    site.install_project(example)
    with pytest.raises(NotFoundError, match="no device 'gpu'") as caught:
        host(site, cache).choose_device("gpu")
    assert "example" in caught.value.hint


def test_a_device_is_looked_for_at_its_backend_first(site: Site, cache: Cache, example: Path) -> None:
    site.install_project(example)
    site.install("hangs")
    plugins = host(site, cache)
    assert plugins.choose_device("example").ok
    assert {state.name: state.phase for state in plugins.plugins()} == {
        "example": "probe",
        "hangs": "description",
    }


def test_a_hang_costs_auto_its_time_limit_once(site: Site, cache: Cache, example: Path) -> None:
    site.install_project(example)
    site.install("hangs")
    assert host(site, cache).choose_device("auto").info.name == "example"
    again = host(site, cache)
    assert again.choose_device("auto").info.name == "example"
    assert "did not finish within 6 s" in by_name(again.plugins())["hangs"].reason


def test_a_device_that_the_user_names_is_looked_for_whatever_is_stored(site: Site, cache: Cache) -> None:
    site.write("made", SLEEPS)
    assert not host(site, cache).devices()[0].ok
    (site.folder / "awake").touch()
    assert not host(site, cache).devices()[0].ok
    assert host(site, cache).choose_device("made").ok
    assert host(site, cache).devices()[0].ok


def test_auto_takes_the_best_usable_device(site: Site, cache: Cache, example: Path) -> None:
    site.install_project(example)
    site.write("made", FAILS_TO_OPEN)
    plugins = host(site, cache)
    device = plugins.choose_device("auto")
    assert device.info.name == "example"
    assert plugins.open_device(device).info.name == "example"


def test_auto_without_any_device_is_not_found(site: Site, cache: Cache) -> None:
    with pytest.raises(NotFoundError):
        host(site, cache).choose_device("auto")


def test_a_plugin_that_fails_to_open_is_set_aside(site: Site, cache: Cache) -> None:
    site.write("made", FAILS_TO_OPEN.format(error="OSError('it is in use')"))
    plugins = host(site, cache)
    (device,) = plugins.devices()
    with pytest.raises(PluginError, match="OSError: it is in use"):
        plugins.open_device(device)
    (state,) = plugins.plugins()
    assert (state.state, state.phase) == ("failed", "open")
    assert plugins.failed_backends() == ()
    assert plugins.backends() == {}


def test_an_error_of_the_device_stays_itself(site: Site, cache: Cache) -> None:
    site.write("made", FAILS_TO_OPEN.format(error="DeviceError('it is too hot')"))
    plugins = host(site, cache)
    with pytest.raises(DeviceError, match="too hot"):
        plugins.open_device(plugins.devices()[0])


def test_two_isolated_backends_are_not_opened_in_one_process(site: Site, cache: Cache) -> None:
    (site.folder / "awake").touch()
    for name, isolated in (("made", True), ("rival", True), ("plain", False)):
        source = SLEEPS.replace('"made"', f'"{name}"')
        site.write(name, source.replace("probe, Device)", f"probe, Device, isolated={isolated})"))
    plugins = host(site, cache)
    assert not any(plugins.needs_process(device) for device in plugins.devices())
    for name in ("plain", "made", "plain", "made"):
        plugins.open_device(plugins.choose_device(name)).close()
    assert [one.info.name for one in plugins.devices() if plugins.needs_process(one)] == ["rival"]
    with pytest.raises(DeviceError, match="backends made and rival cannot be used in one process") as caught:
        plugins.open_device(plugins.choose_device("rival"))
    assert caught.value.hint
    assert plugins.failed_backends() == ()


def test_each_kind_is_found_by_its_names(site: Site, cache: Cache) -> None:
    site.write("kinds", KINDS)
    plugins = host(site, cache)
    assert set(plugins.architectures()) == {"made", "MadeForCausalLM"}
    assert set(plugins.transports()) == {"pigeon"}
    assert set(plugins.dialects()) == {"klingon"}
    assert set(plugins.parsers()) == {"runes"}
    assert plugins.backends() == {}
    owner = plugins.plugin_of("transport", "pigeon")
    assert owner is not None
    assert owner.name == "kinds"
    assert plugins.plugin_of("transport", "tcp") is None
    assert plugins.plugin_of("dialect", "pigeon") is None


def test_only_plugins_of_the_kind_are_imported(site: Site, cache: Cache) -> None:
    site.write("kinds", KINDS)
    site.install("hangs")
    host(site, cache).plugins()
    for module in ("made_kinds", "trial_hangs"):
        del sys.modules[module]
    assert set(host(site, cache).transports()) == {"pigeon"}
    assert "trial_hangs" not in sys.modules


def test_a_plugin_that_broke_after_it_was_described_is_set_aside(site: Site, cache: Cache) -> None:
    site.write("kinds", "import made_toolkit\n" + KINDS)
    (site.folder / "made_toolkit.py").touch()
    host(site, cache).plugins()
    for module in ("made_kinds", "made_toolkit"):
        del sys.modules[module]
    (site.folder / "made_toolkit.py").write_text("raise OSError('its library is gone')")
    plugins = host(site, cache)
    assert plugins.transports() == {}
    (state,) = plugins.plugins()
    assert "its library is gone" in state.reason


def test_a_verb_of_a_plugin_is_loaded(site: Site, cache: Cache) -> None:
    site.write("greeter", COMMAND)
    plugins = host(site, cache)
    assert isinstance(plugins.command("greet"), click.Command)
    with pytest.raises(NotFoundError):
        plugins.command("wave")


def test_looking_anew_forgets_what_was_stored(site: Site, cache: Cache) -> None:
    site.write("made", "import made_toolkit\n" + FAILS_TO_OPEN)
    plugins = host(site, cache)
    assert plugins.plugins()[0].state == "failed"
    (site.folder / "made_toolkit.py").touch()
    (state,) = plugins.examine()
    assert (state.state, state.phase) == ("ok", "probe")
    (site.folder / "made_toolkit.py").unlink()
    sys.modules.pop("made_toolkit")
    sys.modules.pop("made_made")
    (state,) = host(site, cache).examine()
    assert state.state == "failed"


def test_a_plugin_that_the_user_disabled_is_not_imported_and_says_so(
    site: Site, cache: Cache, caplog: pytest.LogCaptureFixture
) -> None:
    plugins = site.install("raises_on_import", "twin_one")
    host = PluginHost(plugins, cache, disabled=["raises", "twin-one"])
    assert {state.name: state.state for state in host.plugins()} == {
        "raises": "disabled",
        "twin-one": "disabled",
    }
    assert host.devices() == ()
    assert not caplog.records
    with pytest.raises(PluginError, match="was disabled: you disabled it") as caught:
        host.choose_device("twin-one")
    assert caught.value.hint == "run `llmd plugins enable twin-one`"
    assert {state.state for state in host.examine()} == {"disabled"}
