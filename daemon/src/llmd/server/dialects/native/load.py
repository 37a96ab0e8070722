"""``POST /llmd/load``: loads a model and reports progress."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web
from msgspec import Struct

from llmd.requests.fields import RequestFields
from llmd.server.http.bodies import read_object
from llmd.server.http.guards import peer_of
from llmd.server.http.line_stream import LineStream
from llmd.server.models.derived_model import AnsweringModel
from llmd.server.models.keep_alive import read_keep_alive
from llmd.server.models.served_model import ReadyModel
from llmd.server.request_record import current_record
from llmd.server.service import Service

FIRST_LINE_S = 1.0
LOOK_S = 0.1
LOOKS = 10
"""Looks after which a step that has not changed is sent again."""


class Step(Struct, frozen=True):
    """Progress of a load: ``done`` of ``total`` bytes of a step; both are 0 if they are not known."""

    step: str
    done: int = 0
    total: int = 0


async def load(request: web.Request, service: Service) -> web.StreamResponse:
    """Load ``model``. Streams a line of JSON for each step, and at the end one with the result.

    ``keep_alive`` is how long it stays loaded without requests. A model that has failed is started again.

    Raises:
        BadRequestError: no model is named.
        NotFoundError: there is no such model.
        LlmdError: it cannot be loaded; once lines were sent, the error is the last of them.
    """
    fields = RequestFields(await read_object(request))
    asked, keep_alive_s = fields.required_text("model"), read_keep_alive(fields)
    model = await service.models.resolve(asked, allow_path=peer_of(request).is_unix, retry=True)
    async with LineStream(request, {}, FIRST_LINE_S) as lines:
        with model.in_use(keep_alive_s):
            async with current_record().in_time():
                ready = asyncio.Task(model.ready(), name=f"load of {model.name}")
                try:
                    async for step in steps(model, ready):
                        await lines.send(step)
                finally:
                    ready.cancel()
                    await asyncio.wait({ready})
            await lines.send(_result(model, ready.result()))
        await lines.end()
    return lines.response


async def steps(model: AnsweringModel, ready: asyncio.Task[ReadyModel]) -> AsyncIterator[Step]:
    """Yield what the model does until it is ready: when that changes, and at least once per second."""
    last, unchanged = Step(""), 0
    while not ready.done():
        step = present_step(model)
        unchanged = 0 if step != last else unchanged + 1
        if unchanged % LOOKS == 0:
            last = step
            yield step
        await asyncio.wait({ready}, timeout=LOOK_S)


def present_step(model: AnsweringModel) -> Step:
    """Return what a model that is not ready does now."""
    if waits_for := model.leases.waits_for:
        return Step(f"waiting for the memory of {', '.join(waits_for)}")
    progress = model.supervisor.progress
    if progress is None:
        return Step("starting the engine")
    return Step(progress.phase, progress.done, progress.total)


def _result(model: AnsweringModel, ready: ReadyModel) -> dict[str, Any]:
    loaded = ready.loaded
    return {
        "step": "loaded",
        "done": 1,
        "total": 1,
        "model": model.name,
        "load_s": loaded.load_s,
        "size_bytes": loaded.size_bytes,
        "context_len": loaded.window,
        "devices": loaded.devices,
        "notices": loaded.notices,
    }
