"""The state of plugins. Importing this module imports neither plugins nor numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from llmd.api.errors import PluginError
from llmd.host.names import PluginName

# The cache kinds under which these structs are stored.
DESCRIPTION = "description"
PROBE = "probe"

Phase = Literal["name", "description", "probe", "open"]
State = Literal["ok", "failed", "unknown", "disabled", "missing"]
"""``disabled``: by the user. ``missing``: it was installed, and an upgrade of the environment removed it."""


class Failure(msgspec.Struct, frozen=True):
    """Why a plugin was disabled, in which phase, and how to fix it."""

    phase: Phase
    reason: str
    fix: str

    @classmethod
    def of(cls, phase: Phase, error: PluginError) -> Failure:
        return cls(phase, error.message, error.hint)

    @classmethod
    def disabled(cls, plugin: PluginName) -> Failure:
        """Return the failure of a plugin that the user disabled: nothing else fails in the phase *name*."""
        return cls("name", "you disabled it", f"run `llmd plugins enable {plugin.name}`")

    def error(self, plugin: PluginName) -> PluginError:
        """Return the failure as an error, for a plugin that the user named."""
        return PluginError(f"plugin {plugin} was disabled: {self.reason}", hint=self.fix)


class Summary(msgspec.Struct, frozen=True):
    """The description of a plugin without its objects."""

    provides: Mapping[str, tuple[str, ...]] = {}
    """The claimed names by plugin kind."""
    commands: Mapping[str, str] = {}
    """The help by subcommand."""
    failure: Failure | None = None


class Verdict(msgspec.Struct, frozen=True):
    """The part of a stored probe report that can be read without its devices."""

    failure: Failure | None = None


class PluginState(msgspec.Struct, frozen=True):
    """One row of ``llmd plugins list``."""

    name: str
    distribution: str
    version: str
    module: str
    phase: Phase
    """The last phase reached."""
    state: State
    reason: str = ""
    fix: str = ""
    provides: Mapping[str, tuple[str, ...]] = {}


def state_of(plugin: PluginName, summary: Summary | None, verdict: Verdict | None) -> PluginState:
    """Return the row of a plugin; None means that the phase was not reached yet."""
    failure = (summary and summary.failure) or (verdict and verdict.failure) or None
    return PluginState(
        name=plugin.name,
        distribution=plugin.distribution,
        version=plugin.version,
        module=plugin.module,
        phase=failure.phase if failure else reached(summary, verdict),
        state=_state(summary, failure),
        reason=failure.reason if failure else "",
        fix=failure.fix if failure else "",
        provides=summary.provides if summary else {},
    )


def _state(summary: Summary | None, failure: Failure | None) -> State:
    if failure:
        return "disabled" if failure.phase == "name" else "failed"
    return "ok" if summary else "unknown"


def reached(summary: Summary | None, verdict: Verdict | None) -> Phase:
    """Return the last phase reached."""
    if summary is None:
        return "name"
    return "description" if verdict is None else "probe"
