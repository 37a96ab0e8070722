"""Everything about one plugin: metadata of its distribution, its state, and the times of its probe."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from importlib import metadata
from pathlib import Path

import msgspec

from llmd.api.plugins import ENTRY_POINT_GROUP
from llmd.host.cache import Cache
from llmd.host.listing import known_states
from llmd.host.names import DEVICE_TRIAL, PluginName, module_files
from llmd.host.probing import Prober, ProbeReport
from llmd.host.states import State, Summary

HOMEPAGES = ("homepage", "source", "repository", "documentation")
"""Labels of addresses in metadata, the most useful first."""


class PluginInfo(msgspec.Struct, frozen=True):
    """Everything about one plugin."""

    name: str
    distribution: str
    version: str
    summary: str
    homepage: str
    licence: str
    state: State
    reason: str
    fix: str
    provides: Mapping[str, tuple[str, ...]]
    """Names by kind."""
    contract: int | None
    """``LLMD_API`` of its module; None if that is not a plain number."""
    entry_points: tuple[str, ...]
    """Those of its distribution for llmd, as ``name = module``."""
    requires: tuple[str, ...]
    location: str
    """Folder that its files are relative to."""
    files: tuple[str, ...]
    import_s: float
    """Seconds to import and describe it; 0 if it was not measured."""
    probe_s: float
    """Seconds of its probe; 0 if it was not measured."""


def plugin_info(
    plugin: PluginName, plugins: Sequence[PluginName], cache: Cache, disabled: Collection[str]
) -> PluginInfo:
    """Return everything about a plugin; ``plugins`` are all installed ones.

    It is probed in a child process, unless it is disabled or the result of its probe is stored.
    """
    skipped = plugin.name in disabled
    report = ProbeReport(Summary()) if skipped else Prober(cache, trial=DEVICE_TRIAL).probe(plugin)
    states = known_states(plugins, cache, DEVICE_TRIAL, disabled)
    state = states[tuple(plugins).index(plugin)]
    about = metadata.distribution(plugin.distribution)
    fields = about.metadata
    return PluginInfo(
        name=plugin.name,
        distribution=plugin.distribution,
        version=plugin.version,
        summary=field(fields, "Summary"),
        homepage=homepage(fields),
        licence=field(fields, "License-Expression") or field(fields, "License"),
        state=state.state,
        reason=state.reason,
        fix=state.fix,
        provides=state.provides or report.summary.provides,
        contract=stated_contract(plugin.module),
        entry_points=tuple(
            f"{point.name} = {point.value}"
            for point in about.entry_points
            if point.group == ENTRY_POINT_GROUP
        ),
        requires=tuple(about.requires or ()),
        location=str(about.locate_file("")),
        files=tuple(str(file) for file in about.files or () if file.suffix != ".pyc"),
        import_s=report.import_s,
        probe_s=report.probe_s,
    )


def field(fields: metadata.PackageMetadata, name: str) -> str:
    """Return a field of the metadata, or an empty string."""
    return fields[name] if name in fields else ""  # noqa: SIM401 - it has no `get` before Python 3.12


def homepage(fields: metadata.PackageMetadata) -> str:
    """Return the address that a distribution gives for itself, or an empty string."""
    urls = [line.partition(",") for line in fields.get_all("Project-URL") or ()]
    by_label = {label.strip().lower(): url.strip() for label, _, url in urls}
    if "Home-page" in fields:
        by_label.setdefault("homepage", fields["Home-page"])
    return next((by_label[label] for label in HOMEPAGES if label in by_label), "")


def stated_contract(module: str) -> int | None:
    """Return ``LLMD_API`` of a module, read from its source without importing it."""
    tail = f"{module.rpartition('.')[2]}.py"
    for path in module_files(module):
        if path.name in {tail, "__init__.py"} and (found := _assigned(path)) is not None:
            return found
    return None


def _assigned(source: Path) -> int | None:
    try:
        tree = ast.parse(source.read_text())
    except (OSError, SyntaxError, ValueError):
        return None
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="LLMD_API")], value=ast.Constant(value=int(number))):
                return number
    return None
