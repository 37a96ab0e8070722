"""Compares two configurations, and says when each change can take effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from llmd.config.schema import EngineConfig
from llmd.config.setting_values import Origin, setting_name
from llmd.config.sources import Settings, with_origins

Applies = Literal["now", "next_load", "restart"]

NOW = frozenset(
    f"server.{name}"
    for name in (
        "alias",
        "allow_host",
        "allow_origin",
        "buffer_tokens",
        "drain_s",
        "headers_timeout_s",
        "idle_timeout_s",
        "keep_alive",
        "load",
        "log_level",
        "max_queue",
        "max_queue_per_key",
        "max_queue_tokens",
        "no_auth",
        "ping_s",
        "request_timeout_s",
        "require_key",
        "write_timeout_s",
    )
)
"""Settings that a running daemon can change."""

NEXT_LOAD = frozenset(
    [
        "server.lora",
        "server.tool_parser",
        "server.reasoning_parser",
        *(f"engine.{name}" for name in EngineConfig.__struct_fields__),
    ]
)
"""Settings that a model gets when it is loaded; a loaded one keeps its own."""

OTHERS = "client."
"""Settings of commands, which read them at every start."""


class Change(Struct, frozen=True):
    """A setting with a new value."""

    setting: str
    """As `llmd config show` names it."""
    old: Any
    new: Any
    applies: Applies


def applies(key: str) -> Applies:
    """Return when a change of a setting takes effect."""
    if key in NOW:
        return "now"
    return "next_load" if key in NEXT_LOAD else "restart"


def changes(old: Settings, new: Settings) -> list[Change]:
    """Return each setting of the daemon whose value differs, also those for single models."""
    found = list(_differences(old.origins, new.origins, None))
    for model in sorted({*old.models, *new.models}):
        # A model without a table of its own has the settings for all models.
        before, after = old.models.get(model, {}), new.models.get(model, {})
        found += _differences({**new.origins, **before}, {**new.origins, **after}, model)
    return found


def _differences(old: Mapping[str, Origin], new: Mapping[str, Origin], model: str | None) -> Iterator[Change]:
    for key, origin in new.items():
        if old[key].value != origin.value and not key.startswith(OTHERS):
            yield Change(setting_name(key, model), old[key].value, origin.value, applies(key))


def without_restart(old: Settings, new: Settings) -> Settings:
    """Return ``new``, but with the old value of each setting that needs a restart."""
    kept = {key: origin for key, origin in old.origins.items() if applies(key) == "restart"}
    return with_origins(new, {**new.origins, **kept})
