"""``GET /llmd/kv``: the KV blocks of a loaded model."""

from __future__ import annotations

from collections import Counter
from typing import Any, get_args

from aiohttp import web

from llmd.api.reports import BlockState, GroupBlocks
from llmd.server.dialects.native.reply import reply
from llmd.server.errors import UnavailableError
from llmd.server.service import Service


async def kv(request: web.Request, service: Service) -> web.Response:
    """Return the number of blocks in each state, and the states in the order of the pool, by KV group.

    Raises:
        NotFoundError: the model is not loaded.
        RequestError: no model is named, and not exactly one is loaded.
        UnavailableError: its engine is loading, or too busy to answer.
    """
    model = service.models.find_served(request.query.get("model"))
    found = await model.supervisor.blocks()
    if found is None:
        raise UnavailableError(
            f"the engine of {model.name} does not answer: it is loading, or busy with a long step",
            code="engine_busy",
            hint="retry in a moment",
            retry_after_s=1,
        )
    return reply({"model": model.name, "groups": [_row(one) for one in found.groups]})


def _row(group: GroupBlocks) -> dict[str, Any]:
    counts: Counter[BlockState] = Counter()
    for state, count in group.map:
        counts[state] += count
    return {
        "group": group.group,
        "block_len": group.block_len,
        "blocks": counts.total(),
        **{state: counts[state] for state in get_args(BlockState)},
        "map": group.map,
    }
