"""Applies changed settings and plugins to a running daemon, without touching its running requests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from llmd.config import Address, Settings
from llmd.config.changes import Change, changes, without_restart
from llmd.host.code_changes import ChangedPlugin
from llmd.host.plugin_host import PluginHost
from llmd.server.engines.engine_starter import EngineStarter
from llmd.server.http.access import Access
from llmd.server.http.listeners import check_exposure
from llmd.server.http.origins import allowed_origins
from llmd.server.loaded_plugins import LoadedPlugins, PluginChanges
from llmd.server.models.kept_models import KeptModels
from llmd.server.models.model_loading import ModelLoading, queue_limits
from llmd.server.models.model_manager import ModelManager
from llmd.server.models.model_settings import check_parsers
from llmd.server.service import Service

if TYPE_CHECKING:
    from llmd.server.frontend import Front, FrontParts

logger = logging.getLogger(__name__)


class Inputs(Struct, frozen=True):
    """What a daemon is built from, and what a reload reads again."""

    settings: Settings
    aliases: Mapping[str, str]
    host: PluginHost
    models: tuple[str, ...]
    """The models that stay loaded."""


class ReloadReport(Struct, frozen=True):
    """What a reload has changed."""

    changed: tuple[Change, ...] = ()
    new_plugins: tuple[str, ...] = ()
    lost_plugins: tuple[str, ...] = ()
    changed_plugins: tuple[ChangedPlugin, ...] = ()
    """Plugins with another version or other files than before."""


class Reloader:
    """The parts of a daemon that a reload changes. Use on the event loop only."""

    def __init__(
        self,
        service: Service,
        loading: ModelLoading,
        manager: ModelManager,
        kept: KeptModels,
        engines: EngineStarter,
        access: Access,
        addresses: tuple[Address, ...],
        use_log_level: Callable[[str], None],
    ) -> None:
        self._service = service
        self._loading = loading
        self._manager = manager
        self._kept = kept
        self._engines = engines
        self._access = access
        self._addresses = addresses
        self._use_log_level = use_log_level
        self._plugins = LoadedPlugins(loading.host)

    async def apply(self, front: Front, read: Callable[[], Inputs]) -> ReloadReport:
        """Read the inputs again; use all of them, or raise and change nothing.

        Raises:
            LlmdError: the inputs cannot be read, or a value cannot be used.
        """
        inputs, parts, plugins = await self._service.in_thread(self._checked, read)
        old = self._loading.settings
        settings = without_restart(old, inputs.settings)
        check_exposure(
            self._addresses,
            protected=settings.config.server.listen.no_auth or self._access.has_keys,
        )
        # From here on nothing fails.
        report = ReloadReport(
            tuple(changes(old, inputs.settings)), plugins.new, plugins.lost, plugins.changed
        )
        self._use(front, parts, settings, inputs)
        self._plugins.use(plugins)
        await self._kept.begin(inputs.models)
        if report.new_plugins or report.lost_plugins or report.changed_plugins:
            await self._engines.replace_spare()
        for change in report.changed:
            logger.info("setting_changed", extra={"setting": change.setting, "applies": change.applies})
        return report

    def _checked(self, read: Callable[[], Inputs]) -> tuple[Inputs, FrontParts, PluginChanges]:
        """Read and check everything. Runs in a thread, because plugins that are new are imported."""
        from llmd.server.frontend import FrontParts

        inputs = read()
        plugins = self._plugins.changes(self._loading.host, inputs.host)
        if not plugins:  # the old host knows what it has probed
            inputs = structs.replace(inputs, host=self._loading.host)
        settings = inputs.settings
        check_parsers(inputs.host, settings)
        server = settings.config.server
        origins = allowed_origins(server.listen.allow_origin, settings.origins["server.allow_origin"].source)
        return inputs, FrontParts(server, inputs.host.dialects().values(), origins), plugins

    def _use(self, front: Front, parts: FrontParts, settings: Settings, inputs: Inputs) -> None:
        server = settings.config.server
        self._loading.settings = settings
        self._loading.host = inputs.host
        self._service.use(server, inputs.host, inputs.aliases)
        front.use(parts)
        self._access.change(no_auth=server.listen.no_auth, require_key=server.listen.require_key)
        self._manager.update_keep_alive()
        for name, model in self._manager.served.items():
            config = settings.of_model(name)
            model.supervisor.admission.limits = queue_limits(config)
            model.supervisor.buffer_tokens = config.server.queue.buffer_tokens
        self._use_log_level(server.log_level)
