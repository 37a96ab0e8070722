"""What the host asks of a child process, and what the child answers, in frames."""

from __future__ import annotations

import msgspec

from llmd.api.device import DeviceProfile
from llmd.host.devices import DeviceState
from llmd.host.names import PluginName
from llmd.host.states import Summary


class Probe(msgspec.Struct, frozen=True, tag=True):
    """Describe a plugin, find its devices, and try each.

    ``trial`` is the dotted name (``package.module:function``) of a function that gets an opened device and returns
    a sentence for each thing it does wrong; empty: devices are only opened.
    """

    plugin: PluginName
    trial: str


class Measure(msgspec.Struct, frozen=True, tag=True):
    """Open one device and run its benchmark."""

    plugin: PluginName
    backend: str
    device: str
    budget_s: float


class Job(msgspec.Struct, frozen=True):
    """What a child reads: its task, the search path of the process that started it, and when to end by itself."""

    task: Probe | Measure
    search_path: tuple[str, ...]
    alarm_s: float


IMPORTED = "was imported"
"""What a plugin does first, as `Began.doing` says it."""


class Began(msgspec.Struct, frozen=True, tag=True):
    """The child is about to do something that may end it; ``doing`` completes "while it …".

    ``driver`` is that of the backend that does it (`llmd.api.plugins.Backend`).
    """

    doing: str
    driver: str = ""


class Described(msgspec.Struct, frozen=True, tag=True):
    """The description of the plugin."""

    summary: Summary


class Found(msgspec.Struct, frozen=True, tag=True):
    """A device, tried."""

    device: DeviceState


class Measured(msgspec.Struct, frozen=True, tag=True):
    """The result of a benchmark."""

    profile: DeviceProfile


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The plugin raised, or returned what the contract does not allow. Nothing follows."""

    reason: str
    fix: str


class Finished(msgspec.Struct, frozen=True, tag=True):
    """Everything was done. Nothing follows."""


Answer = Began | Described | Found | Measured | Failed | Finished
