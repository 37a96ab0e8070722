"""Decides whether plugins that are being installed can be used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from llmd.api.errors import PluginError
from llmd.host.cache import Cache
from llmd.host.claims import settle
from llmd.host.description import summarize
from llmd.host.devices import DeviceState
from llmd.host.installation.pip import UNCHANGED
from llmd.host.listing import known_summary
from llmd.host.names import DEVICE_TRIAL, PluginName, discover
from llmd.host.probing import Prober, ProbeReport, probe_now
from llmd.host.states import Failure, Summary

_REPAIR = (
    "repair the plugin and install it again. `pip install --editable` installs a folder without this trial;"
    " `llmd check {name}` then shows each case"
)


class Acceptance:
    """Probes plugins; ``reports`` are the latest results."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._prober = Prober(cache, trial=DEVICE_TRIAL)
        self.reports: dict[PluginName, ProbeReport] = {}

    def __call__(self, plugins: Sequence[PluginName], overlay: tuple[str, ...]) -> None:
        """Check plugins whose modules are in the folders ``overlay``, or installed if there are none.

        Raises:
            PluginError: the probe of one failed, or no device of it works, or it claims a name that another
                plugin has.
        """
        for plugin in plugins:
            self.reports[plugin] = (
                probe_now(plugin, DEVICE_TRIAL, overlay) if overlay else self._prober.probe(plugin, "nothing")
            )
        self._refuse_failures()
        self._refuse_clashes()

    def _refuse_failures(self) -> None:
        for plugin, report in self.reports.items():
            if report.failure:
                raise _refusal(
                    plugin, f"its probe failed: {report.failure.reason}", _fix(plugin, report.failure)
                )
            if faulty := faulty_devices(report):
                reasons = "; ".join(f"device {one.info.name}: {one.reason}" for one in faulty)
                raise _refusal(plugin, reasons, _REPAIR.format(name=faulty[0].info.name))

    def _refuse_clashes(self) -> None:
        """Refuse names that installed plugins have; those of the same distributions are being replaced."""
        replaced = {plugin.distribution for plugin in self.reports}
        installed = [plugin for plugin in discover() if plugin.distribution not in replaced]
        known = [(plugin, self._summary(plugin)) for plugin in installed]
        summaries = [(plugin, summary) for plugin, summary in known if summary]
        new = [(plugin, report.summary) for plugin, report in self.reports.items()]
        for plugin, summary in settle([*summaries, *new]).items():
            if plugin in self.reports and summary.failure:
                raise _refusal(plugin, summary.failure.reason, _way_out(self.reports[plugin], summaries))

    def _summary(self, plugin: PluginName) -> Summary | None:
        """Return what an installed plugin provides. Those of llmd are imported if that is not stored."""
        return known_summary(plugin, self._cache) or (summarize(plugin) if plugin.built_in else None)


def faulty_devices(report: ProbeReport) -> list[DeviceState]:
    """Return the devices that fail, if no device works.

    One that calls itself unusable is no failure: its hardware is missing.
    """
    tried = [device for device in report.devices if device.info.score > 0]
    return [] if any(device.ok for device in tried) else tried


def _fix(plugin: PluginName, failure: Failure) -> str:
    """Return the fix of a failure, unless it is to uninstall the plugin, which is not installed."""
    name = plugin.distribution
    repair, _, uninstall = failure.fix.partition(", or run `llmd plugins uninstall")
    if uninstall and "--upgrade" not in repair:
        return repair
    if uninstall or "llmd plugins uninstall" in failure.fix:
        return f"report it to its authors, or try another version: `llmd plugins install {name}==VERSION`"
    return failure.fix


def _way_out(report: ProbeReport, installed: Iterable[tuple[PluginName, Summary]]) -> str:
    """Return what to do about a name that is taken: nobody can uninstall llmd's own."""
    claims = report.summary.provides.items()
    for plugin, summary in installed:
        if plugin.built_in and any(
            set(names) & set(summary.provides.get(kind, ())) for kind, names in claims
        ):
            return "the name belongs to llmd; give the plugin another one"
    return "uninstall or disable the other one first"


def _refusal(plugin: PluginName, reason: str, fix: str) -> PluginError:
    return PluginError(f"{plugin} was not installed: {reason}", hint=f"{UNCHANGED}; {fix}")


class Installed(msgspec.Struct, frozen=True):
    """A plugin that was installed, and the result of its probe."""

    name: str
    distribution: str
    version: str
    probe: ProbeReport

    @classmethod
    def of(cls, plugin: PluginName, report: ProbeReport) -> Installed:
        return cls(plugin.name, plugin.distribution, plugin.version, report)
