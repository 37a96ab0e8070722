"""The plugins and their devices. All are described and probed again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from llmd.cli.composition import build_host, build_names
from llmd.cli.doctor.check import Check, Surroundings
from llmd.cli.plugins.listing import all_states, missing_plugins
from llmd.host.devices import DeviceState, best
from llmd.host.states import PluginState


def checks(_around: Surroundings) -> Iterator[Check]:
    host = build_host()
    in_use = {key_of(state): state for state in all_states() if state.phase == "open"}
    states = [in_use.get(key_of(state), state) for state in host.examine()]
    yield from plugin_checks((*states, *missing_plugins(build_names())))
    yield from device_checks(host.devices())


def key_of(state: PluginState) -> tuple[str, str]:
    """Identify a plugin. A daemon stores what failed while it was in use, which no examination finds."""
    return state.distribution, state.name


def plugin_checks(states: Sequence[PluginState]) -> Iterator[Check]:
    for state in states:
        name = f"plugin:{state.name}"
        if state.state == "failed":
            yield Check(name, "fail", f"{state.distribution} {state.version}: {state.reason}", state.fix)
        elif state.state == "missing":
            yield Check(name, "warn", state.reason, state.fix)
        elif state.state == "disabled":
            yield Check(name, "ok", f"{state.distribution} {state.version}: {state.reason}")
        else:
            yield Check(name, "ok", f"{state.distribution} {state.version}")


def device_checks(devices: Sequence[DeviceState]) -> Iterator[Check]:
    """Check each device, and that one can be used. A device that calls itself unusable is only a warning."""
    for device in devices:
        name, info = f"device:{device.info.name}", device.info
        if device.ok:
            yield Check(name, "ok", info.description or info.kind)
        else:
            yield Check(name, "warn" if info.score <= 0 else "fail", device.reason, device.fix)
    if chosen := best(devices):
        yield Check("devices", "ok", f"{chosen.info.name} is the default")
    else:
        yield Check(
            "devices", "fail", "no device can be used", "fix a device above, or reinstall llmd-daemon"
        )
