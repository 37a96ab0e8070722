"""Messages between the host and a child process, in frames: one `Job`, then its answers."""

from __future__ import annotations

import msgspec

from llmd.api.device import DeviceProfile
from llmd.host.devices import DeviceState
from llmd.host.names import PluginName
from llmd.host.states import Summary
from llmd.process.limits import TimeLimit


class Probe(msgspec.Struct, frozen=True, tag=True):
    """Describe a plugin, find its devices, and test each."""

    plugin: PluginName
    trial: str
    """The dotted name (``package.module:function``) of a function that gets an opened device and returns a
    sentence for each fault; empty: devices are only opened.
    """


class Measure(msgspec.Struct, frozen=True, tag=True):
    """Open one device and measure it."""

    plugin: PluginName
    backend: str
    device: str
    profiler: str
    """The dotted name (``package.module:function``) of a function that gets an opened device and a number of
    seconds, and returns a `DeviceProfile`."""
    budget_s: float


class Job(msgspec.Struct, frozen=True):
    """The input of a child."""

    task: Probe | Measure
    search_path: tuple[str, ...]
    """``sys.path`` of the process that started the child."""
    overlay: tuple[str, ...]
    """Folders whose modules win over all others: those of a plugin that is not installed yet."""
    alarm_s: float
    """Seconds after which the child ends by itself, until a step with a limit begins."""


ORPHAN_S = 5.0
"""How long after its time limit a child ends by itself, if the process that started it was killed and the
system does not end the child."""


IMPORTED = "was imported"
"""`Began.doing` of the first step."""


class Began(msgspec.Struct, frozen=True, tag=True):
    """The child is about to do something that may crash it."""

    doing: str
    """Completes the phrase "while it …"."""
    driver: str = ""
    """The driver that the backend uses (`llmd.api.plugins.Backend`)."""
    limit: TimeLimit | None = None
    """Time limit from now on; None: the limit before continues."""


class Described(msgspec.Struct, frozen=True, tag=True):
    """The description of the plugin."""

    summary: Summary
    import_s: float
    """Seconds that importing and describing it took."""


class Found(msgspec.Struct, frozen=True, tag=True):
    """A device that was tested."""

    device: DeviceState


class Measured(msgspec.Struct, frozen=True, tag=True):
    """The result of a measurement."""

    profile: DeviceProfile


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The plugin raised, or returned something that the contract does not allow. The last answer."""

    reason: str
    fix: str


class Finished(msgspec.Struct, frozen=True, tag=True):
    """The task is complete. The last answer."""


Answer = Began | Described | Found | Measured | Failed | Finished
