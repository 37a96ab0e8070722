"""The third phase, *probe*: finds a plugin's devices on this machine and tests them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import msgspec

from llmd.api.errors import PluginError
from llmd.host.cache import Cache
from llmd.host.devices import DeviceState, named, unique_names
from llmd.host.fingerprint import machine_fingerprint, plugin_fingerprint, probe_fingerprint
from llmd.host.isolation import BusyMachineError, OverrunError, run_isolated
from llmd.host.jobs import Described, Found, Probe
from llmd.host.names import PluginName
from llmd.host.states import DESCRIPTION, PROBE, Failure, Summary
from llmd.process.limits import TimeLimit

MAX_PARALLEL_PROBES = 4
# How long a probe that did not pass is trusted. Retrying a plugin that crashes or hangs at every start would
# cost its time each time; never retrying would lose a device that was only asleep (docs/decisions/0006).
BELIEVED_S = 3600.0
# A time limit says less about a device than a crash: the next try may find kernels that this one compiled.
OVERRUN_BELIEVED_S = 600.0

Trust = Literal["all", "passes", "nothing"]
"""Which stored reports are used: passes, and others for `ProbeReport.believed_s`; only passes; none."""


IMPORT_LIMIT = TimeLimit.of_processor_time(10.0)
"""Limit for importing and describing a plugin; its backends have the limits of the steps after that."""


class ProbeReport(msgspec.Struct, frozen=True):
    """The result of a probe."""

    summary: Summary
    devices: tuple[DeviceState, ...] = ()
    failure: Failure | None = None
    """Set if the probe as a whole failed; there are no devices then."""
    taken_at: float = 0.0
    """Seconds since the epoch."""
    believed_s: float = BELIEVED_S
    """How long it is trusted if it did not pass; 0: not stored, it says nothing about the plugin."""
    import_s: float = 0.0
    """Seconds that importing and describing the plugin took; 0: it failed, or was not measured."""
    probe_s: float = 0.0
    """Seconds that the probe took, import included."""

    @property
    def passed(self) -> bool:
        """Whether it found devices and all can be used. A pass is valid until the plugin or the machine
        changes.
        """
        return bool(self.devices) and all(device.ok for device in self.devices)


class Prober:
    """Probes plugins in child processes and stores the reports and the plugins' summaries."""

    def __init__(self, cache: Cache, *, trial: str, clock: Callable[[], float] = time.time) -> None:
        self._cache = cache
        self._trial = trial
        self._clock = clock

    def probe(self, plugin: PluginName, trust: Trust = "all") -> ProbeReport:
        """Probe a plugin, or return the stored report for this plugin and machine if ``trust`` allows it."""
        fingerprint = probe_fingerprint(plugin, self._machine, self._trial)
        known = self._cache.get(PROBE, plugin.key, fingerprint, ProbeReport)
        if known and self._holds(known, trust):
            return known
        report = probe_now(plugin, self._trial)
        report = msgspec.structs.replace(report, taken_at=self._clock())
        if report.believed_s:
            self._cache.put(PROBE, plugin.key, fingerprint, report)
        if report.failure is None:
            self._cache.put(DESCRIPTION, plugin.key, plugin_fingerprint(plugin), report.summary)
        return report

    def store_failure(self, plugin: PluginName, summary: Summary, failure: Failure) -> None:
        """Store the failure of a plugin that was in use, so that other processes show it."""
        fingerprint = probe_fingerprint(plugin, self._machine, self._trial)
        report = ProbeReport(summary, failure=failure, taken_at=self._clock())
        self._cache.put(PROBE, plugin.key, fingerprint, report)

    def _holds(self, report: ProbeReport, trust: Trust) -> bool:
        if report.passed:
            return trust != "nothing"
        return trust == "all" and 0 <= self._clock() - report.taken_at < report.believed_s

    @functools.cached_property
    def _machine(self) -> str:
        return machine_fingerprint()


class Probes:
    """The probes of this process: at most one per plugin, unless a fresh one is requested."""

    def __init__(self, prober: Prober, order: Sequence[PluginName]) -> None:
        self._prober = prober
        self._order = order
        self._reports: dict[PluginName, ProbeReport] = {}

    def run(self, plugins: Sequence[PluginName], trust: Trust = "all") -> dict[PluginName, Failure]:
        """Probe plugins in parallel; return the new failures."""
        waiting = [plugin for plugin in plugins if trust == "nothing" or plugin not in self._reports]
        with ThreadPoolExecutor(MAX_PARALLEL_PROBES, thread_name_prefix="probe") as pool:
            probe = functools.partial(self._prober.probe, trust=trust)
            reports = dict(zip(waiting, pool.map(probe, waiting), strict=True))
        self._reports |= reports
        return {plugin: report.failure for plugin, report in reports.items() if report.failure}

    def devices(self) -> tuple[DeviceState, ...]:
        """Return the devices found, in the order of the plugins."""
        reports = (self._reports[plugin] for plugin in self._order if plugin in self._reports)
        return unique_names(device for report in reports for device in report.devices)

    def device(self, name: str) -> DeviceState | None:
        """Return the device of that name, or None."""
        return named(name, self.devices())

    def summary(self, plugin: PluginName) -> Summary:
        """Return the summary of a plugin that was probed."""
        return self._reports[plugin].summary

    def __contains__(self, plugin: object) -> bool:
        return plugin in self._reports

    def clear(self) -> None:
        """Forget all reports."""
        self._reports.clear()


def probe_now(plugin: PluginName, trial: str, overlay: tuple[str, ...] = ()) -> ProbeReport:
    """Describe and probe a plugin in a child process. Modules in the folders ``overlay`` win over installed
    ones.
    """
    start_s = time.perf_counter()
    try:
        answers = run_isolated(Probe(plugin, trial), IMPORT_LIMIT, overlay)
    except PluginError as error:
        return ProbeReport(Summary(), failure=Failure.of("probe", error), believed_s=_believed_s(error))
    described = next((one for one in answers if isinstance(one, Described)), Described(Summary(), 0.0))
    return ProbeReport(
        summary=described.summary,
        devices=tuple(answer.device for answer in answers if isinstance(answer, Found)),
        import_s=described.import_s,
        probe_s=time.perf_counter() - start_s,
    )


def _believed_s(error: PluginError) -> float:
    if isinstance(error, BusyMachineError):
        return 0.0
    return OVERRUN_BELIEVED_S if isinstance(error, OverrunError) else BELIEVED_S
