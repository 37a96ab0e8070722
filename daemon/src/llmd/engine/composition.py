"""Connect the engine process to the installed plugins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from llmd.api.device import Device, DeviceOptions
from llmd.api.errors import DeviceError
from llmd.api.messages import Load, Loading
from llmd.engine.loading import LoadedModel, OpenDevice, load_model
from llmd.engine.placement.candidates import MachineDevices, free_room
from llmd.engine.steps.step_trace import Tracer
from llmd.host.benchmarks import Benchmarks
from llmd.host.cache import Cache
from llmd.host.choices import ChoicesFile
from llmd.host.devices import DeviceState
from llmd.host.names import DEVICE_TRIAL, discover
from llmd.host.plugin_host import PluginHost
from llmd.registry.packed_weights import PackedWeightFiles
from llmd.registry.spools import Spools
from llmd.remote.opening import SCHEME, open_apart


def make_host(cache: Path, choices: Path | None = None) -> PluginHost:
    """Return a host of all installed plugins.

    ``cache`` is the directory of probe results, ``choices`` the file of plugins that the user disabled.
    """
    disabled = ChoicesFile(choices).load().disabled if choices else ()
    return PluginHost(discover(), Cache(cache), trial=DEVICE_TRIAL, disabled=disabled)


def loader_for(
    cache: Path, choices: Path | None = None, tracer: Tracer | None = None
) -> Callable[[Load, Callable[[Loading], None]], LoadedModel]:
    """Return `load_model`, bound to the installed plugins; ``cache`` and ``choices`` are those of
    `make_host`.
    """
    host, spools, packed_files = make_host(cache, choices), Spools(cache), PackedWeightFiles(cache)
    devices = MachineDevices(host, Benchmarks(Cache(cache)), free_room())
    # Imported now, not in `load`: an engine that still waits for its `Load` message is idle.
    architectures = host.architectures()

    def load(message: Load, report: Callable[[Loading], None]) -> LoadedModel:
        open_device = device_opener(host, message.options_of)
        return load_model(
            message, architectures, open_device, report, spools, packed_files, devices, tracer=tracer
        )

    return load


def device_opener(
    host: PluginHost, options_of: Callable[[str], DeviceOptions] = lambda _name: DeviceOptions()
) -> OpenDevice:
    """Return a function that opens ``auto`` or a named device, with the options of the device."""
    return partial(_open, host, options_of)


def _open(host: PluginHost, options_of: Callable[[str], DeviceOptions], name: str) -> Device:
    device = host.choose_device(name)
    options = options_of(device.info.name)
    return (
        _open_apart(host, device, options)
        if host.needs_process(device)
        else host.open_device(device, options)
    )


def _open_apart(host: PluginHost, device: DeviceState, options: DeviceOptions) -> Device:
    plugin, transport = host.plugin_of("transport", SCHEME), host.transports().get(SCHEME)
    if plugin is None or transport is None:
        raise DeviceError(
            f"device {device.info.name} needs a process of its own, and there is no transport {SCHEME}:// to it",
            hint="run `llmd plugins install llmd-transport`, or run the model on devices of one backend",
        )
    return open_apart(device, options, transport, plugin)
