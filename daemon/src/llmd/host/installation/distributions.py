"""Facts about distributions, from their metadata: files, plugins, dependents. Nothing is imported."""

from __future__ import annotations

import email.parser
import os
import zipfile
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path

from llmd.api.errors import PluginError
from llmd.api.plugins import ENTRY_POINT_GROUP
from llmd.host.installation.pip import Resolved
from llmd.host.names import PluginName, canonical, project_of


def find(name: str) -> metadata.Distribution | None:
    """Return the installed distribution of that name, or None."""
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def installed_version(name: str) -> str:
    """Return the version of an installed distribution; empty if there is none."""
    found = find(name)
    return found.version if found else ""


def files_of(distribution: metadata.Distribution, prefix: Path) -> list[Path]:
    """Return the files of an installed distribution that exist, as absolute paths.

    Raises:
        PluginError: it has no list of its files, or files outside of the environment.
    """
    if distribution.files is None:
        raise PluginError(
            f"{distribution.name} has no list of its files, so llmd cannot remove it",
            hint="remove it with the program that installed it",
        )
    paths = listed_files(distribution.name)
    if outside := [path for path in paths if not path.is_relative_to(prefix)]:
        raise PluginError(
            f"{distribution.name} has files outside of {prefix}, such as {outside[0]}",
            hint="remove it with the program that installed it",
        )
    return [path for path in paths if os.path.lexists(path)]


def listed_files(name: str) -> list[Path]:
    """Return the absolute paths that the metadata of an installed distribution lists."""
    found = find(name)
    return [Path(os.path.normpath(str(file.locate()))) for file in (found.files if found else None) or ()]


def plugins_in(folders: Iterable[Path]) -> tuple[PluginName, ...]:
    """Return the plugins of the distributions in these folders."""
    paths = [str(folder) for folder in folders]
    return tuple(
        PluginName(point.name, point.value, one.name, one.version)
        for one in metadata.distributions(path=paths)
        for point in one.entry_points
        if point.group == ENTRY_POINT_GROUP
    )


def dependents_of(names: Sequence[str]) -> list[str]:
    """Return the installed distributions that require one of these."""
    wanted = set(map(canonical, names))
    return sorted(
        one.name
        for one in metadata.distributions()
        if canonical(one.name) not in wanted
        and any(
            "extra ==" not in line and canonical(project_of(line)) in wanted for line in one.requires or ()
        )
    )


def identity(wheel: Path) -> Resolved:
    """Return the name and version of a wheel.

    Raises:
        PluginError: the file is not a wheel.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            name = next(one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
            fields = email.parser.BytesHeaderParser().parsebytes(archive.read(name))
    except (zipfile.BadZipFile, StopIteration) as error:
        raise PluginError(f"{wheel.name} is not a wheel", hint="build it again") from error
    return Resolved(canonical(fields["Name"]), fields["Version"])
