"""Installs and uninstalls plugins: resolves, unpacks, probes, and only then changes the environment."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import msgspec

from llmd.api.errors import ConfigError, NotFoundError, PluginError
from llmd.host.installation.core import core_versions, write_constraints
from llmd.host.installation.distributions import (
    dependents_of,
    files_of,
    find,
    identity,
    installed_version,
    listed_files,
    plugins_in,
)
from llmd.host.installation.environment import Environment
from llmd.host.installation.file_changes import FileChanges, files_below
from llmd.host.installation.own import check_replacement
from llmd.host.installation.pip import UNCHANGED, Pip, Resolved
from llmd.host.installation.targets import Target
from llmd.host.names import PluginName, canonical
from llmd.host.source import record_source


class Change(msgspec.Struct, frozen=True):
    """One distribution that is added, replaced or removed. An empty version means absent."""

    distribution: str
    before: str
    after: str


class Plan(msgspec.Struct, frozen=True):
    """What an installation would do."""

    target: Target
    resolved: tuple[Resolved, ...]
    wheels: Path
    """Folder for the wheels."""
    built: str = ""
    """The distribution whose wheel is there already."""

    @property
    def changes(self) -> list[Change]:
        return [Change(one.name, installed_version(one.name), one.version) for one in self.resolved]


Check = Callable[[Sequence[PluginName], tuple[str, ...]], None]
"""Called with the plugins of an installation and the folders that their modules are in before they are moved
into the environment (none: they are in the environment). Raises `PluginError` if they cannot be used."""


class Installer:
    """Changes the plugins of one environment."""

    def __init__(self, environment: Environment, pip: Pip) -> None:
        self._environment = environment
        self._pip = pip
        self._files = FileChanges(environment.prefix, environment.site)

    @contextmanager
    def plan(self, target: Target, *, upgrade: bool) -> Iterator[Plan]:
        """Yield what installing the target would change. Its wheels exist as long as the context.

        Raises:
            PluginError: it cannot be installed, or only with other versions of llmd's dependencies.
            ConflictError: it would replace a part of llmd that is not older.
        """
        with tempfile.TemporaryDirectory(prefix="llmd-plugins-") as folder:
            constraints, wheels = Path(folder) / "constraints.txt", Path(folder) / "wheels"
            wheels.mkdir()
            kept = core_versions()
            write_constraints(kept, constraints)
            wheel = self._pip.build(target.requirement, wheels) if target.is_file else None
            built = identity(wheel) if wheel else None
            # pip skips a wheel whose version is installed, but its files may differ.
            resolved = {built.name: built} if built else {}
            _refuse_core(built.name if built else target.name, kept)
            if built:
                check_replacement(built.name, built.version, installed_version(built.name))
            found = self._pip.resolve(
                str(wheel) if wheel else target.requirement, constraints, upgrade=upgrade
            )
            resolved |= {one.name: one for one in found}
            ordered = tuple(resolved[name] for name in sorted(resolved))
            yield Plan(target, ordered, wheels, built.name if built else "")

    def install(self, plan: Plan, check: Check) -> None:
        """Install what was planned; ``check`` decides twice whether the plugins can be used: before anything
        is changed, and afterwards.

        Raises:
            PluginError: they cannot be used, or not with other plugins. The environment is as before.
            ConflictError: another process is changing the environment.
        """
        if plan.built:
            self._pip.fetch([one for one in plan.resolved if one.name != plan.built], plan.wheels)
        with self._files.open():
            self._pip.unpack(plan.resolved, self._files.staged, plan.wheels if plan.built else None)
            folders = self._staged_modules()
            if plan.built:
                _record_source(folders, plan)
            plugins = plugins_in(folders)
            if not plugins:
                raise PluginError(
                    f"{plan.target.requirement} has no plugin for llmd: it has no entry point of the group `llmd`",
                    hint=f"{UNCHANGED}; to install something else into this environment, use pip or uv",
                )
            self._check_files()
            self._check_others(plan.changes, folders)
            check(plugins, tuple(map(str, folders)))
            self._files.apply(f"installing {_named(plan.resolved)}", self._replaced(plan.resolved))
            importlib.invalidate_caches()
            check(plugins, ())
            self._files.complete()

    def uninstall(self, name: str) -> Change:
        """Remove a distribution; its dependencies stay.

        Raises:
            NotFoundError: it is not installed.
            PluginError: llmd or another distribution needs it.
            ConflictError: another process is changing the environment.
        """
        found = find(name)
        if found is None:
            raise NotFoundError(f"{name} is not installed", hint="see `llmd plugins list`")
        if others := dependents_of([found.name]):
            raise PluginError(
                f"{found.name} cannot be uninstalled: {', '.join(others)} need{'s' if len(others) == 1 else ''} it",
                hint=f"run `llmd plugins uninstall {others[0]}` first",
            )
        change = Change(canonical(found.name), found.version, "")
        files = files_of(found, self._environment.prefix)
        with self._files.open():
            self._files.apply(f"uninstalling {found.name}", files)
            self._files.complete()
        return change

    def _staged_modules(self) -> list[Path]:
        """Return the staged folder that corresponds to the folder of installed modules."""
        inside = self._environment.site.relative_to(self._environment.prefix)
        return [self._files.staged / inside]

    def _check_files(self) -> None:
        """Refuse wheels with files of llmd or its dependencies: pip would overwrite these.

        Raises:
            PluginError: the first such file.
        """
        prefix = self._environment.prefix
        owners = {path: name for name in core_versions() for path in listed_files(name)}
        for staged in files_below(self._files.staged):
            path = prefix / staged.relative_to(self._files.staged)
            if path in owners:
                raise PluginError(
                    f"the plugin would overwrite {path}, which belongs to {owners[path]}",
                    hint=f"{UNCHANGED}; report it to the plugin's authors",
                )

    def _check_others(self, changes: Sequence[Change], folders: Sequence[Path]) -> None:
        """Refuse to replace what other distributions need in its present version.

        Raises:
            PluginError: their requirements, in the words of pip.
        """
        if not any(change.before for change in changes):
            return
        faults = self._pip.faults(folders)
        if broken := faults and faults - self._pip.faults():  # some may have been there before
            raise PluginError(
                f"other distributions would no longer work: {'; '.join(sorted(broken))}",
                hint=f"{UNCHANGED}; upgrade or uninstall them first",
            )

    def _replaced(self, resolved: Sequence[Resolved]) -> list[Path]:
        """Return the files of the installed versions."""
        olds = [find(one.name) for one in resolved]
        return [path for old in olds if old for path in files_of(old, self._environment.prefix)]


def _refuse_core(name: str, kept: dict[str, str]) -> None:
    """Refuse to install llmd or a dependency of it as if it were a plugin.

    Raises:
        ConfigError: it is one of them.
    """
    if core := [one for one in kept if canonical(one) == name]:
        raise ConfigError(
            f"{core[0]} {kept[core[0]]} is part of llmd and is not changed as a plugin",
            hint="upgrade llmd with the program that installed it",
        )


def _record_source(folders: Sequence[Path], plan: Plan) -> None:
    """Write down where the built distribution is from, for errors that say how to install it again."""
    for one in metadata.distributions(path=list(map(str, folders))):
        if canonical(one.name) == plan.built:
            (files,) = {
                file.parts[0] for file in one.files or () if file.name == "METADATA" and len(file.parts) == 2
            }
            record_source(Path(str(one.locate_file(files))), plan.target.requirement)


def _named(resolved: Sequence[Resolved]) -> str:
    return ", ".join(f"{one.name} {one.version}" for one in resolved)
