"""Names that a new plugin cannot have, because llmd or an installed plugin has them."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.errors import ConflictError
from llmd.cli.plugins.project import distribution_name
from llmd.host.installation.distributions import find
from llmd.host.installation.own import OWN_PLUGINS
from llmd.host.names import CORE_DISTRIBUTION
from llmd.host.states import PluginState

OTHER_NAME = "choose another name"


def check_free(kind: str, name: str, plugins: Sequence[PluginState]) -> None:
    """Check that no plugin has the name of a new one, and that its distribution would be new.

    Raises:
        ConflictError: one has.
    """
    distribution = distribution_name(kind, name)
    if distribution in OWN_PLUGINS:
        raise ConflictError(f"{distribution} is the name of a part of llmd", hint=OTHER_NAME)
    if found := find(distribution):
        raise ConflictError(f"{distribution} {found.version} is installed already", hint=OTHER_NAME)
    what = kind.rpartition("-")[2]  # both kinds of parsers share their names
    for plugin in plugins:
        if name in plugin.provides.get(what, ()):
            raise ConflictError(f"{_owner(plugin)} has a {what} {name!r}", hint=OTHER_NAME)
        if name == plugin.name:
            raise ConflictError(f"{_owner(plugin)} has a plugin {name!r}", hint=OTHER_NAME)


def _owner(plugin: PluginState) -> str:
    if plugin.distribution == CORE_DISTRIBUTION:
        return "llmd itself"
    return f"{plugin.distribution} {plugin.version}"
