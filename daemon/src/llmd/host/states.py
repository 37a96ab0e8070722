"""What is known of a plugin. None of this needs the plugin, or numpy, to be imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from llmd.api.errors import PluginError
from llmd.host.names import PluginName

# The kinds of cached results that these structs are stored as.
DESCRIPTION = "description"
PROBE = "probe"

Phase = Literal["name", "description", "probe", "open"]
State = Literal["ok", "failed", "unknown"]


class Failure(msgspec.Struct, frozen=True):
    """Why a plugin was set aside, at which phase, and what fixes it."""

    phase: Phase
    reason: str
    fix: str

    @classmethod
    def of(cls, phase: Phase, error: PluginError) -> Failure:
        return cls(phase, error.message, error.hint)

    def error(self, plugin: PluginName) -> PluginError:
        """As the error of a plugin that the user named."""
        return PluginError(f"plugin {plugin} was set aside: {self.reason}", hint=self.fix)


class Summary(msgspec.Struct, frozen=True):
    """What a plugin's description said, without the callables.

    ``provides`` maps a plugin kind to the names it claims; ``commands`` maps a subcommand to its help.
    """

    provides: Mapping[str, tuple[str, ...]] = {}
    commands: Mapping[str, str] = {}
    failure: Failure | None = None


class Verdict(msgspec.Struct, frozen=True):
    """The part of a stored probe report that is known without its devices."""

    failure: Failure | None = None


class PluginState(msgspec.Struct, frozen=True):
    """One row of ``llmd plugins list``. ``phase`` is the last phase that was reached."""

    name: str
    distribution: str
    version: str
    module: str
    phase: Phase
    state: State
    reason: str = ""
    fix: str = ""
    provides: Mapping[str, tuple[str, ...]] = {}


def state_of(plugin: PluginName, summary: Summary | None, verdict: Verdict | None) -> PluginState:
    """The row of a plugin; None stands for a phase that was not reached yet."""
    failure = (summary and summary.failure) or (verdict and verdict.failure) or None
    return PluginState(
        name=plugin.name,
        distribution=plugin.distribution,
        version=plugin.version,
        module=plugin.module,
        phase=failure.phase if failure else reached(summary, verdict),
        state="failed" if failure else "ok" if summary else "unknown",
        reason=failure.reason if failure else "",
        fix=failure.fix if failure else "",
        provides=summary.provides if summary else {},
    )


def reached(summary: Summary | None, verdict: Verdict | None) -> Phase:
    """The last phase that was reached."""
    if summary is None:
        return "name"
    return "description" if verdict is None else "probe"
