"""The third grain, *probe*: which devices a plugin finds on this machine, and whether they compute."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from llmd.api.errors import PluginError
from llmd.host.cache import Cache
from llmd.host.devices import DeviceState, unique_names
from llmd.host.fingerprint import machine_fingerprint, probe_fingerprint
from llmd.host.isolation import run_isolated
from llmd.host.jobs import Described, Found, Probe
from llmd.host.names import PluginName
from llmd.host.states import PROBE, Failure, Summary

MAX_PARALLEL_PROBES = 4


class ProbeReport(msgspec.Struct, frozen=True):
    """What a probe found. ``failure`` is set where the probe as a whole failed; there are no devices then."""

    summary: Summary
    devices: tuple[DeviceState, ...] = ()
    failure: Failure | None = None

    @property
    def passed(self) -> bool:
        """No device that says it is usable failed its trial."""
        return self.failure is None and all(device.ok or device.info.score <= 0 for device in self.devices)


class Prober:
    """Probes plugins in child processes and keeps what they found."""

    def __init__(self, cache: Cache, *, time_limit_s: float, trial: str) -> None:
        self._cache = cache
        self._time_limit_s = time_limit_s
        self._trial = trial

    def probe(self, plugin: PluginName, *, fresh: bool = False) -> ProbeReport:
        """Probe a plugin, or take a pass of the same plugin on the same machine from the cache."""
        fingerprint = probe_fingerprint(plugin, self._machine, self._trial)
        known = None if fresh else self._cache.get(PROBE, plugin.key, fingerprint, ProbeReport)
        if known and known.passed:
            return known
        report = probe_now(plugin, self._time_limit_s, self._trial)
        self._cache.put(PROBE, plugin.key, fingerprint, report)
        return report

    @functools.cached_property
    def _machine(self) -> str:
        return machine_fingerprint()


class Probes:
    """What this process has probed: at most once for each plugin, unless it is asked to do so again."""

    def __init__(self, prober: Prober, order: Sequence[PluginName]) -> None:
        self._prober = prober
        self._order = order
        self._reports: dict[PluginName, ProbeReport] = {}

    def run(self, plugins: Sequence[PluginName], *, fresh: bool = False) -> dict[PluginName, Failure]:
        """Probe plugins in parallel; returns the failures that are new."""
        waiting = [plugin for plugin in plugins if fresh or plugin not in self._reports]
        with ThreadPoolExecutor(MAX_PARALLEL_PROBES, thread_name_prefix="probe") as pool:
            probe = functools.partial(self._prober.probe, fresh=fresh)
            reports = dict(zip(waiting, pool.map(probe, waiting), strict=True))
        self._reports |= reports
        return {plugin: report.failure for plugin, report in reports.items() if report.failure}

    def devices(self) -> tuple[DeviceState, ...]:
        """The devices that were found, in the order of plugins."""
        reports = (self._reports[plugin] for plugin in self._order if plugin in self._reports)
        return unique_names(device for report in reports for device in report.devices)

    def device(self, name: str) -> DeviceState | None:
        """The device of that name, where it was found."""
        return next((device for device in self.devices() if device.info.name == name), None)

    def __contains__(self, plugin: object) -> bool:
        return plugin in self._reports

    def clear(self) -> None:
        """Forget everything."""
        self._reports.clear()


def probe_now(plugin: PluginName, time_limit_s: float, trial: str) -> ProbeReport:
    """Describe and probe a plugin in a child process."""
    try:
        answers = run_isolated(Probe(plugin, trial), time_limit_s)
    except PluginError as error:
        return ProbeReport(Summary(), failure=Failure.of("probe", error))
    return ProbeReport(
        summary=next((answer.summary for answer in answers if isinstance(answer, Described)), Summary()),
        devices=tuple(answer.device for answer in answers if isinstance(answer, Found)),
    )
