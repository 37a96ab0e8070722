"""State and control of the daemon. Needs the right to manage, which `llmd.server.app` checks."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from aiohttp import web

from llmd.host.old_keys import with_old_keys
from llmd.host.plugin_host import PluginHost
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.native.reply import reply
from llmd.server.http.bodies import read_object
from llmd.server.models.served_model import ServedModel
from llmd.server.service import Service
from llmd.server.telemetry.daemon_state import ModelState


async def ps(_request: web.Request, service: Service) -> web.Response:
    """Return the loaded models with their directories and states."""
    states = {state.name: state for state in await service.states.whole()}
    models = [
        _row(model, service.models.names_of(model.name)[1:], states[model.name])
        for model in service.models.served
        if model.name in states
    ]
    daemon = {"pid": os.getpid(), "log": msgspec.to_builtins(service.log_place)}
    return reply({"version": service.version, **daemon, "models": models})


async def stop(request: web.Request, service: Service) -> web.Response:
    """Unload ``model``, or shut the daemon down if ``daemon`` is true.

    Raises:
        NotFoundError: that model is not loaded.
        BadRequestError: neither is given.
    """
    fields = RequestFields(await read_object(request))
    name = fields.text("model")
    if fields.boolean("daemon"):
        service.shut_down()
        return reply({"stopping": True})
    if not name:
        raise BadRequestError(
            "the request names nothing to stop",
            code="invalid_value",
            param="model",
            hint="set model to a name, or daemon to true",
        )
    await service.models.unload(name)
    return reply({"stopped": name})


async def reload(_request: web.Request, service: Service) -> web.Response:
    """Read keys and certificate again, then settings and plugins, as on SIGHUP.

    Raises:
        LlmdError: something cannot be read or used; it stays as it was.
    """
    report = msgspec.to_builtins(await service.reload())
    return reply({"reloaded": True, **report})


async def plugins(_request: web.Request, service: Service) -> web.Response:
    """Return every plugin with its state and reason, as far as this daemon has loaded them."""
    states = await service.ask_host(PluginHost.plugins)
    return reply({"plugins": [with_old_keys(msgspec.to_builtins(one)) for one in states]})


def _expiry(model: ServedModel) -> str | None:
    """Return when the idle model is unloaded; None: it stays loaded."""
    remaining_s = model.leases.remaining_s
    if remaining_s is None:
        return None
    return (datetime.now(UTC) + timedelta(seconds=remaining_s)).isoformat(timespec="seconds")


def _row(model: ServedModel, aliases: list[str], state: ModelState) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": model.name,
        "aliases": aliases,
        "directory": str(model.directory),
        "status": model.status,
        "error": str(model.error) if model.error else None,
        "engine_pid": model.supervisor.pid,
        "restarts": model.supervisor.restarts,
        "loading": msgspec.to_builtins(model.progress),
        "report": msgspec.to_builtins(state.report),
        "verdicts": msgspec.to_builtins(state.verdicts),
        "stage_times": msgspec.to_builtins(state.stage_times),
        "size_bytes": model.size_bytes,
        "users": model.leases.users,
        "pinned": model.leases.pinned,
        "waits_for": model.leases.waits_for,
        "expires_at": _expiry(model),
    }
    if model.loaded is not None:
        row["loaded"] = msgspec.to_builtins(model.loaded)
        row["context_len"] = model.loaded.window
    return row
