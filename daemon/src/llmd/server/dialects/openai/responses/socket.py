"""``GET /v1/responses``: responses over a WebSocket, OpenAI's mode for agents with many short turns.

Each message ``response.create`` has the fields of ``POST /v1/responses`` and is answered by the events of its
stream, one request after the other. The last response of a connection can be continued, stored or not.

Source: OpenAI's guide "WebSocket mode" and the types ``ResponsesClientEvent`` and ``ResponsesServerEvent`` of
its Python library. Left out: lanes (``stream_id``) and steering (``response.steer``), which are refused: one
of a waiting request when it is its turn, the other at once, since it is about the answer that is running.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from typing import Any

from aiohttp import WSMessage, WSMsgType, web

from llmd.api.errors import LlmdError
from llmd.api.problem import Problem
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.openai.responses.reply import Reply
from llmd.server.dialects.openai.responses.routes import Responses
from llmd.server.dialects.openai.responses.steering import refused_steering
from llmd.server.dialects.openai.responses.store import Stored
from llmd.server.http.bodies import decode_object
from llmd.server.http.error_shapes import error_response
from llmd.server.http.json_line import encode_json
from llmd.server.http.problems import CLIENT_GONE, INTERNAL, INVALID_REQUEST, problem_of
from llmd.server.request_record import RequestRecord, begin_record, current_record
from llmd.server.service import Service

logger = logging.getLogger(__name__)

CREATE = "response.create"
HEARTBEAT_S = 30.0
MAX_WAITING = 16
"""How many messages of a connection may wait for the one that is answered; more are left in the network."""


class ResponsesSocket:
    """The route."""

    def __init__(self, responses: Responses) -> None:
        self._responses = responses

    async def connect(self, request: web.Request, service: Service) -> web.StreamResponse:
        """Open a WebSocket: each message `response.create` is answered by the events of its response."""
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=service.config.limits.max_body)
        if not socket.can_prepare(request).ok:
            problem = Problem(
                426,
                INVALID_REQUEST,
                "upgrade_required",
                "this route opens a WebSocket: send POST to it for a response over HTTP",
                headers={"Upgrade": "websocket"},
            )
            return error_response(request, problem)
        await socket.prepare(request)
        await Turns(self._responses, request, service, socket).run()
        return socket


class Turns:
    """The requests of one connection."""

    def __init__(
        self, responses: Responses, request: web.Request, service: Service, socket: web.WebSocketResponse
    ) -> None:
        self._responses = responses
        self._request = request
        self._service = service
        self._socket = socket
        self._connection = current_record()
        self._numbers = itertools.count(1)
        self._last: Stored | None = None
        self._sending = asyncio.Lock()

    async def run(self) -> None:
        """Answer messages in their order until the client closes the connection, which ends the answer."""
        waiting: asyncio.Queue[WSMessage] = asyncio.Queue(MAX_WAITING)
        async with asyncio.TaskGroup() as tasks:
            answering = tasks.create_task(self._answer_all(waiting), name="answers of a WebSocket")
            async for message in self._socket:
                refusal = refused_steering(message)
                if refusal is None:
                    await waiting.put(message)
                else:
                    await self._refuse(refusal)
            answering.cancel()

    async def _answer_all(self, waiting: asyncio.Queue[WSMessage]) -> None:
        while True:
            message = await waiting.get()
            with contextlib.suppress(ConnectionError):  # the client is gone, which `run` notices, too
                await self._turn(message)

    async def _refuse(self, refusal: dict[str, Any]) -> None:
        with contextlib.suppress(ConnectionError):
            await self._send(refusal)

    async def _turn(self, message: WSMessage) -> None:
        """Answer one message, counted and logged as a request of its own."""
        record = self._begin()
        status = CLIENT_GONE
        try:
            with self._service.activity.request():
                status = await self._answered(message)
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - one bad request must not end the connection
            problem = _problem(error)
            status, record.error = problem.status, problem.code or problem.type
            await self._send(error_message(problem))
        finally:
            self._service.metrics.end(record, status)
            logger.info("request", extra={"path": self._request.path, "status": status, **record.as_log()})

    def _begin(self) -> RequestRecord:
        record = RequestRecord(
            f"{self._connection.request_id}-{next(self._numbers)}",
            key=self._connection.key,
            started=time.monotonic(),
            route=self._connection.route,
            traceparent=self._connection.traceparent,
        )
        record.limit(self._service.config.limits.request_timeout_s)
        begin_record(record)
        self._service.metrics.begin(record)
        return record

    async def _answered(self, message: WSMessage) -> int:
        """Send the events of a response and return the status that its HTTP reply would have."""
        fields, generates = read_event(message)
        earlier = self._earlier(fields)
        try:
            reply = await self._responses.reply(
                fields, earlier, self._request, self._service, max_tokens=None if generates else 1
            )
            status = await self._sent(reply, generates=generates)
        except Exception:
            self._forget(fields)
            raise
        kept = self._responses.keep(reply)
        if kept is None:
            self._forget(fields)
        else:
            self._last = kept
        return status

    async def _sent(self, reply: Reply, *, generates: bool) -> int:
        try:
            async with contextlib.aclosing(reply.events() if generates else reply.prepare()) as events:
                async for event in events:
                    await self._send(event)
        except ConnectionError:
            raise
        except Exception as error:
            if not reply.has_begun:
                raise
            problem = _problem(error)
            current_record().error = problem.code or problem.type
            await self._send(reply.failed(problem))
            return problem.status
        return 200

    def _earlier(self, fields: RequestFields) -> list[Any]:
        """Return the items that a request continues: of the connection's last response, or stored ones."""
        last = self._continued(fields)
        return self._responses.earlier(fields) if last is None else last.items

    def _continued(self, fields: RequestFields) -> Stored | None:
        """Return the connection's last response, if a request continues it."""
        last = self._last
        return last if last is not None and fields.value("previous_response_id") == last.body["id"] else None

    def _forget(self, fields: RequestFields) -> None:
        """After a failure, the client must send the conversation again, as with OpenAI."""
        if self._continued(fields) is not None:
            self._last = None

    async def _send(self, event: Any) -> None:
        async with self._sending:  # an answer and a refusal may be sent at the same time
            await self._socket.send_str(encode_json(event).decode())


def read_event(message: WSMessage) -> tuple[RequestFields, bool]:
    """Return the fields of a message ``response.create``, and whether it wants an answer.

    Raises:
        BadRequestError: it is another message, or asks for what a connection does not do.
    """
    if message.type is not WSMsgType.TEXT:
        raise BadRequestError("the message is not text", code="invalid_json", hint="send JSON as text")
    fields = RequestFields(decode_object(message.data))
    kind = fields.text("type")
    if kind != CREATE:
        raise BadRequestError(
            f"the event {kind} is not supported",
            code="unsupported_event",
            param="type",
            hint=f"send {CREATE}",
        )
    fields.value("stream")  # the answer is always a stream
    why = "one connection answers one request after the other; open another connection"
    fields.refuse("stream_id", (), why)
    return fields, fields.boolean("generate", default=True)


def error_message(problem: Problem) -> dict[str, Any]:
    """Return the message about a request that failed before its response began."""
    error = {
        "type": problem.type,
        "code": problem.code,
        "message": problem.message,
        "param": problem.param,
    }
    headers = {name.lower(): value for name, value in problem.headers.items()}
    return {
        "type": "error",
        "status": problem.status,
        "error": error | ({"headers": headers} if headers else {}),
    }


def _problem(error: Exception) -> Problem:
    if isinstance(error, LlmdError):
        return problem_of(error)
    logger.error("request_failed", exc_info=error)
    return INTERNAL
