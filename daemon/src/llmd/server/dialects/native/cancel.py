"""``POST /llmd/cancel``: ends a request of another client."""

from __future__ import annotations

import logging

from aiohttp import web

from llmd.requests.fields import RequestFields
from llmd.server.dialects.native.reply import reply
from llmd.server.errors import CancelledRequestError, UnknownRequestError
from llmd.server.http.bodies import read_object
from llmd.server.service import Service

logger = logging.getLogger(__name__)


async def cancel(request: web.Request, service: Service) -> web.Response:
    """End the request with the id ``request_id``, whether it runs or waits; its client gets an error.

    Raises:
        BadRequestError: no id is given.
        UnknownRequestError: no request with this id runs or waits.
    """
    request_id = RequestFields(await read_object(request)).required_text("request_id")
    # Clients may choose ids, so that several requests may have the same.
    found = [one for one in service.metrics.requests if one.request_id == request_id]
    if not found:
        raise UnknownRequestError(
            f"no request {request_id} runs or waits", hint="GET /llmd/events lists the requests in flight"
        )
    for record in found:
        record.cancel(
            CancelledRequestError(
                "the request was cancelled at the daemon", hint="send it again if you need it"
            )
        )
        logger.info("request_cancelled", extra={"request_id": request_id, "model": record.model})
    return reply({"cancelled": request_id})
