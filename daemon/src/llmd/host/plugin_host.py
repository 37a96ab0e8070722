"""The plugin host: gives the rest of llmd backends, architectures, transports and the other kinds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from llmd.api.device import Device, DeviceOptions
from llmd.api.errors import DeviceError, LlmdError, NotFoundError, PluginError
from llmd.api.plugins import Architecture, Backend, Dialect, Parser, Transport
from llmd.host.cache import Cache
from llmd.host.catalog import Catalog
from llmd.host.claims import settle
from llmd.host.code_changes import IN_DAEMON
from llmd.host.description import replacement
from llmd.host.devices import DeviceState, FailedBackend, best
from llmd.host.listing import disabled_summary
from llmd.host.names import PluginName
from llmd.host.probing import Prober, Probes, Trust
from llmd.host.states import Failure, PluginState, Summary, Verdict, state_of

if TYPE_CHECKING:
    import click

AS_IT_FINDS_BEST = DeviceOptions()
log = logging.getLogger(__name__)


class PluginHost:
    """Plugins by kind, and the devices that they find. Not thread-safe.

    A plugin that fails in any phase is disabled, and the others continue; requesting a disabled plugin by
    name raises its error. Plugins are imported only when needed. ``trial`` is the dotted name of a function
    that tests a device in the child process of its probe (`llmd.host.jobs.Probe`). ``disabled`` are the names
    of plugins that the user disabled.
    """

    def __init__(
        self,
        plugins: Sequence[PluginName],
        cache: Cache,
        *,
        trial: str = "",
        disabled: Collection[str] = (),
    ) -> None:
        self._catalog = Catalog(cache)
        self._names = tuple(plugins)
        self._user_disabled = frozenset(disabled)
        self._prober = Prober(cache, trial=trial)
        self._probes = Probes(self._prober, self._names)
        self._settled: dict[PluginName, Summary] | None = None
        self._late: dict[PluginName, Failure] = {}
        self._in_use: dict[PluginName, Failure] = {}
        self._apart: dict[PluginName, Summary] = {}
        self._isolated = ""

    @property
    def names(self) -> tuple[PluginName, ...]:
        """Every plugin that the user did not disable, before any is imported."""
        return tuple(name for name in self._names if name.name not in self._user_disabled)

    def plugins(self) -> tuple[PluginState, ...]:
        """Return the state of every plugin, as far as this host knows it."""
        return tuple(
            state_of(plugin, summary, self._verdict(plugin)) for plugin, summary in self._summaries().items()
        )

    def describe_apart(self, plugin: PluginName, last: Summary) -> Failure | None:
        """Describe a plugin in a child process, since this process has imported older code of it; return its
        failure.

        ``last`` is the summary of that older code. If the new code fails, this process goes on with the older
        one where it runs here; devices and architectures are disabled, since engines would run the new one.
        """
        failure = self._probes.run([plugin]).get(plugin)
        self._apart[plugin] = last if failure else self._probes.summary(plugin)
        if failure and not IN_DAEMON & set(last.provides):
            self._disable(plugin, failure)
        return failure

    def note_failure(self, kind: str, name: str, error: Exception) -> None:
        """Note that something that a plugin provides, other than a device, raised an error while it was used.

        The plugin is listed as failed, also by other processes, but stays in use for what is loaded later.
        """
        for plugin, summary in self._summaries().items():
            if name in summary.provides.get(kind, ()) and not summary.failure:
                reason = f"its {kind} {name} raised {type(error).__name__}: {error}"
                fix = f"{replacement(plugin)}; the traceback is in the daemon's log"
                failure = self._in_use[plugin] = Failure("open", reason, fix)
                self._log(plugin, failure)
                if "backend" not in summary.provides:  # devices are probed, and their reports mean more
                    self._prober.store_failure(plugin, summary, failure)

    def summary(self, plugin: PluginName) -> Summary:
        """Return what a plugin provides, or its failure."""
        return self._summaries().get(plugin) or Summary()

    def plugin_of(self, kind: str, name: str) -> PluginName | None:
        """Return the plugin that provides something of that name; None if none does."""
        summaries = self._summaries()
        return next((one for one in self._providing(kind) if name in summaries[one].provides[kind]), None)

    def backends(self) -> dict[str, Backend]:
        return {one.name: one for one in self._all("backend")}

    def architectures(self) -> dict[str, Architecture]:
        return {name: one for one in self._all("architecture") for name in one.names}

    def transports(self) -> dict[str, Transport]:
        return {one.scheme: one for one in self._all("transport")}

    def dialects(self) -> dict[str, Dialect]:
        return {one.name: one for one in self._all("dialect")}

    def parsers(self) -> dict[str, Parser]:
        return {one.name: one for one in self._all("parser")}

    def command(self, subcommand: str) -> click.Command:
        """Return the ``click.Command`` of a subcommand; only the plugin that provides it is imported.

        Raises:
            NotFoundError: no plugin provides it.
            PluginError: the plugin that provides it failed.
        """
        for plugin, summary in self._summaries().items():
            if not summary.failure and subcommand in summary.commands:
                from llmd.host.commands import loaded

                commands = self._catalog.description(plugin).command
                return loaded(plugin, next(command for command in commands if command.name == subcommand))
        hint = "run `llmd --help` for a list of commands"
        raise self._blamed("command", subcommand) or NotFoundError(
            f"there is no command {subcommand!r}", hint=hint
        )

    def devices(self, *, fresh: bool = False) -> tuple[DeviceState, ...]:
        """Return every device that a probe found, usable or not.

        Probes run in parallel child processes. Unless ``fresh``, stored reports are used: passes always, all
        others for at most an hour.
        """
        self._probe(self._providing("backend"), "nothing" if fresh else "all")
        return self._probes.devices()

    def failed_backends(self) -> tuple[FailedBackend, ...]:
        """Return the backends whose plugins failed before they named a device, as far as this host knows."""
        failures = {
            plugin: self._late.get(plugin) or summary.failure for plugin, summary in self._summaries().items()
        }
        return tuple(
            FailedBackend(name, plugin, failure)
            for plugin, failure in failures.items()
            if failure and failure.phase != "open"
            for name in self._backend_names(plugin)
        )

    def find_device(self, name: str) -> DeviceState:
        """Return the device of that name, usable or not.

        Raises:
            NotFoundError: there is no such device.
            PluginError: the plugin of that name failed; the message says why.
        """
        return self._named(name) or self._raise_no_device(name)

    def choose_device(self, name: str) -> DeviceState:
        """Return the device of that name, or for ``auto`` the usable one with the highest score.

        Raises:
            NotFoundError: there is no such device.
            PluginError: the device, or the plugin of that name, cannot be used; the message says why.
        """
        if name == "auto":
            return best(self.devices()) or self._raise_no_device(name)
        chosen = self.find_device(name)
        if not chosen.ok:
            raise PluginError(
                f"device {name} cannot be used: {chosen.reason}", hint=chosen.fix or "see `llmd devices`"
            )
        return chosen

    def needs_process(self, device: DeviceState) -> bool:
        """Whether a device must be opened in another process, because this one has opened devices of another
        isolated backend.
        """
        return device.isolated and self._isolated not in {"", device.backend}

    def open_device(self, device: DeviceState, options: DeviceOptions = AS_IT_FINDS_BEST) -> Device:
        """Open a device (the last phase, *open*). Called only in the process that computes on the device.

        Raises:
            PluginError: the plugin failed.
            DeviceError: the device cannot be opened, or not in this process (`needs_process`).
        """
        backends: Sequence[Backend] = self._catalog.description(device.plugin).backend
        backend = next(one for one in backends if one.name == device.backend)
        if backend.isolated:
            self._isolate(backend.name)
        try:
            return backend.open(device.info.name, options)
        except LlmdError:
            raise
        except Exception as error:  # plugin code may raise anything
            fields = {"device": device.info.name, "plugin": device.plugin.name}
            log.warning("device_open_failed", exc_info=True, extra=fields)
            reason = f"opening device {device.info.name} raised {type(error).__name__}: {error}"
            failure = Failure("open", reason, f"run `llmd doctor` to probe {device.plugin.name} again")
            self._disable(device.plugin, failure)
            raise failure.error(device.plugin) from error

    def examine(self) -> tuple[PluginState, ...]:
        """Describe and probe every plugin again, ignoring stored results."""
        self._late.clear()
        self._probes.clear()
        self._settled = self._settle(self._catalog.fresh)
        self.devices(fresh=True)
        return self.plugins()

    def _summaries(self) -> dict[PluginName, Summary]:
        if self._settled is None:
            self._settled = self._settle(self._catalog.summary)
            for plugin, summary in self._settled.items():
                if summary.failure and plugin.name not in self._user_disabled:
                    self._log(plugin, summary.failure)
        return self._settled

    def _settle(self, summarize: Callable[[PluginName], Summary]) -> dict[PluginName, Summary]:
        """Summarize all plugins except those that the user disabled, which are not imported."""
        return settle(
            (plugin, disabled_summary(plugin))
            if plugin.name in self._user_disabled
            else (plugin, self._apart.get(plugin) or summarize(plugin))
            for plugin in self._names
        )

    def _providing(self, kind: str) -> list[PluginName]:
        """Return the plugins that provide a kind and have not failed."""
        summaries = self._summaries().items()
        return [one for one, summary in summaries if not summary.failure and kind in summary.provides]

    def _backend_names(self, plugin: PluginName) -> tuple[str, ...]:
        """Return the backends of a plugin; its own name if it failed before it said what it provides."""
        provides = self._summaries()[plugin].provides
        return provides.get("backend", ()) if provides else (plugin.name,)

    def _all(self, kind: str) -> Iterator[Any]:
        """Yield the objects of a kind. A plugin that can no longer be described is disabled."""
        for plugin in self._providing(kind):
            if plugin in self._late:
                continue
            try:
                yield from getattr(self._catalog.description(plugin), kind)
            except PluginError as error:
                self._disable(plugin, Failure.of("description", error))

    def _named(self, name: str) -> DeviceState | None:
        """Find a device by name. For ``cuda:0`` the backend ``cuda`` is probed first: others may be slow.

        If the stored probe of that backend did not pass, it is probed again: the user asked for it by name.
        """
        kind, _, _ = name.partition(":")
        summaries, plugins = self._summaries(), self._providing("backend")
        likely = [plugin for plugin in plugins if kind in summaries[plugin].provides["backend"]]
        rounds: tuple[tuple[list[PluginName], Trust], ...] = ((likely, "passes"), (plugins, "all"))
        for some, trust in rounds:
            self._probe(some, trust)
            if found := self._probes.device(name):
                return found
        return None

    def _probe(self, plugins: Sequence[PluginName], trust: Trust) -> None:
        for plugin, failure in self._probes.run(plugins, trust).items():
            self._disable(plugin, failure)

    def _disable(self, plugin: PluginName, failure: Failure) -> None:
        self._late[plugin] = failure
        self._log(plugin, failure)

    def _log(self, plugin: PluginName, failure: Failure) -> None:
        fields = {"plugin": plugin.name, "phase": failure.phase, "reason": failure.reason}
        log.warning("plugin_set_aside", extra=fields)

    def _verdict(self, plugin: PluginName) -> Verdict | None:
        if failure := self._late.get(plugin) or self._in_use.get(plugin):
            return Verdict(failure)
        return Verdict() if plugin in self._probes else None

    def _isolate(self, backend: str) -> None:
        """Take this process for an isolated backend, for good: closing devices does not unload a toolkit.

        Raises:
            DeviceError: another isolated backend has it.
        """
        self._isolated = self._isolated or backend
        if self._isolated != backend:
            raise DeviceError(
                f"devices of the backends {self._isolated} and {backend} cannot be used in one process",
                hint="this is a fault of llmd: report it",
            )

    def _raise_no_device(self, name: str) -> NoReturn:
        usable = ", ".join(device.info.name for device in self._probes.devices() if device.ok) or "none"
        hint = f"usable devices: {usable}; see `llmd devices`"
        backend, _, _ = name.partition(":")
        raise self._blamed("backend", backend) or NotFoundError(f"there is no device {name!r}", hint=hint)

    def why_absent(self, kind: str, name: str) -> PluginError | None:
        """Return why something is not there: its plugin failed, or the user disabled it. None: no plugin
        provides it.
        """
        if failed := self._blamed(kind, name):
            return failed
        for plugin in self._names:
            known = self._catalog.known(plugin) if plugin.name in self._user_disabled else None
            if known and name in known.provides.get(kind, ()):
                return Failure.disabled(plugin).error(plugin)
        return None

    def _blamed(self, kind: str, name: str) -> PluginError | None:
        """Return the failure of a plugin that has or provides a name: it is more helpful than "not found"."""
        for plugin, summary in self._summaries().items():
            failure = self._late.get(plugin) or summary.failure
            if failure and name in {plugin.name, plugin.distribution, *summary.provides.get(kind, ())}:
                return failure.error(plugin)
        return None
