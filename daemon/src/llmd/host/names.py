"""The first phase, *name*: reads entry-point metadata. No plugin is imported."""

from __future__ import annotations

import importlib
import re
import sys
from importlib import metadata
from importlib.machinery import ModuleSpec
from pathlib import Path

import msgspec

CORE_DISTRIBUTION = "llmd-daemon"
PROJECT = re.compile(r"[A-Za-z0-9._-]+")

DEVICE_TRIAL = "llmd.testing.trial:try_device"
"""The function that a probe runs on each device. It is a name, so that only the child process imports it."""

FULL_PROFILE = "llmd.profiling.profile:full_profile"
"""The function that measures everything of a device."""

SHORT_PROFILE = "llmd.profiling.profile:short_profile"
"""The function that measures enough to see whether a device is as fast as before."""


class PluginName(msgspec.Struct, frozen=True):
    """One entry point of the group ``llmd``."""

    name: str
    """What users type."""
    module: str
    """The module to import."""
    distribution: str
    version: str

    @property
    def built_in(self) -> bool:
        return self.distribution == CORE_DISTRIBUTION

    @property
    def key(self) -> str:
        """Unique in the environment: two distributions may use the same plugin name."""
        return f"{self.distribution}.{self.name}"

    def __str__(self) -> str:
        return f"{self.name} ({self.distribution} {self.version})"


def discover() -> tuple[PluginName, ...]:
    """Return every plugin of this environment: built-in ones first, then by distribution and name.

    If two plugins claim a name, the first in this order keeps it, so it must not depend on the search path.
    """
    from llmd.api.plugins import ENTRY_POINT_GROUP

    importlib.invalidate_caches()  # also find plugins installed since this process started
    found = {
        PluginName(point.name, point.value, point.dist.name, point.dist.version)
        for point in metadata.entry_points(group=ENTRY_POINT_GROUP)
        if point.dist is not None
    }
    return tuple(sorted(found, key=lambda one: (not one.built_in, one.distribution, one.name)))


def canonical(distribution: str) -> str:
    """Return the form of a distribution name in which equal names are equal strings (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def project_of(requirement: str) -> str:
    """Return the name that a requirement begins with, as it is written there; empty if there is none."""
    match = PROJECT.match(requirement)
    return match[0] if match else ""


def module_files(module: str) -> tuple[Path, ...]:
    """Return the files of a module's package, or of the module if it is not in a package.

    Unlike `importlib.util.find_spec` this imports no parent package. Empty if the module does not exist.
    """
    origin, folders = _locate(module)
    if not folders:
        return () if origin is None else (origin,)
    files = (path for folder in folders for path in Path(folder).rglob("*") if path.is_file())
    return tuple(sorted(path for path in files if path.suffix != ".pyc"))


def _locate(module: str) -> tuple[Path | None, list[str]]:
    """Return the file of a module and the folders of its package.

    An editable extension has two folders: sources and build.
    """
    package: list[str] = []
    spec: ModuleSpec | None = None
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = _find(name, package or None)
        if spec is None:
            return None, []
        package = spec.submodule_search_locations or package
    return (Path(spec.origin) if spec and spec.origin else None), package


def _find(module: str, folders: list[str] | None) -> ModuleSpec | None:
    for finder in sys.meta_path:
        if spec := finder.find_spec(module, folders):
            return spec
    return None
