"""What a load that names its devices would need of each memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from llmd.api.device import DeviceInfo
from llmd.api.messages import Load
from llmd.engine.placement.default_quant import with_default_quant
from llmd.engine.placement.memory_need import MemoryNeed, needs_of
from llmd.host.plugin_host import PluginHost
from llmd.models.open_model import open_model


def memory_needs(
    load: Load, host: PluginHost, device: Callable[[str], DeviceInfo] | None = None
) -> dict[str, MemoryNeed]:
    """Return the needs; ``device`` finds devices that the host does not have."""
    model = open_model(Path(load.directory), host.architectures(), load.context_len)
    with closing(model.checkpoint):
        found = device or (lambda name: host.choose_device(name).info)
        return needs_of(*with_default_quant(load, model), found)
