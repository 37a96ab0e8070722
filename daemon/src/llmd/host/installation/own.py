"""The distributions that come with llmd: how they are protected, and how to get one back."""

from __future__ import annotations

import re
import shlex

from llmd.api.errors import ConflictError
from llmd.host.names import CORE_DISTRIBUTION, canonical
from llmd.host.source import source_of

OWN_PLUGINS = {
    "llmd-backend-cpu": "cpu",
    "llmd-backend-cuda": "cuda",
    "llmd-backend-vulkan": "vulkan",
    "llmd-transport": "local",
    "llmd-tui": "tui",
}
"""Distributions of llmd that are plugins, with what users type."""

NOT_SET_UP = {
    "llmd-backend-cuda": "plugins/backend_cuda",
    "llmd-backend-vulkan": "plugins/backend_vulkan",
}
"""Those that ``make setup`` does not install, with their folders in a clone."""


def own_distribution(name: str) -> str:
    """Return the distribution of llmd that a user means by a plugin or a distribution; empty: none."""
    return next((own for own, plugin in OWN_PLUGINS.items() if name == plugin or canonical(name) == own), "")


def check_replacement(name: str, version: str, installed: str) -> None:
    """Check that a wheel or a folder may replace the ``installed`` version of a distribution (empty: none).

    Only a newer version may replace one of llmd: a plugin that has the same name by mistake would take its
    place.

    Raises:
        ConflictError: it may not.
    """
    if name not in OWN_PLUGINS or not installed or release(version) > release(installed):
        return
    raise ConflictError(
        f"{name} {installed} comes with llmd, and this {name} {version} is not newer",
        hint=f"nothing was changed; give a plugin of your own another name. If this is llmd's own {name},"
        f" run `llmd plugins uninstall {name} --yes` first",
    )


def release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, without what follows them such as ``rc1``."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def how_to_restore(name: str) -> str:
    """Return how to install a distribution of llmd again. llmd is in no package index."""
    if (clone := checkout()) and name in NOT_SET_UP:
        return f"`llmd plugins install {shlex.quote(f'{clone}/{NOT_SET_UP[name]}')}` installs {name}"
    if clone:
        return f"`make -C {shlex.quote(clone)} setup` installs {name}"
    return (
        f"`llmd plugins install WHEEL` installs the wheel of {name},"
        " which `make setup` puts into wheelhouse/ in a clone of llmd"
    )


def checkout() -> str:
    """Return the clone that llmd runs from; empty if it was installed from a wheel."""
    source = source_of(CORE_DISTRIBUTION)
    return source.place.removesuffix("/").removesuffix("/daemon") if source and source.editable else ""
