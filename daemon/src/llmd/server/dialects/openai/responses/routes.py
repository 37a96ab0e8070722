"""``/v1/responses``: create, show and delete responses, and count prompt tokens."""

from __future__ import annotations

from typing import Any

from aiohttp import web
from msgspec import structs

from llmd.api.problem import Problem
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.openai.input_tokens import counted
from llmd.server.dialects.openai.responses.reply import Reply
from llmd.server.dialects.openai.responses.request import read_input, read_request
from llmd.server.dialects.openai.responses.store import ResponseStore, Stored
from llmd.server.generation.counting import count_tokens
from llmd.server.generation.generation import GenerationRequest
from llmd.server.generation.prepared_request import PreparedRequest
from llmd.server.http.bodies import read_object
from llmd.server.http.error_shapes import error_response
from llmd.server.http.guards import peer_of
from llmd.server.http.json_response import json_response
from llmd.server.http.problems import NOT_FOUND
from llmd.server.models.keep_alive import read_keep_alive
from llmd.server.models.served_model import ReadyModel
from llmd.server.request_record import current_record
from llmd.server.service import Service


class Responses:
    """The routes, and the stored responses."""

    def __init__(self, store: ResponseStore) -> None:
        self._store = store

    async def create(self, request: web.Request, service: Service) -> web.StreamResponse:
        """Answer a conversation. The response is stored only if ``store`` is true."""
        fields = RequestFields(await read_object(request))
        stream = fields.boolean("stream")
        answering = await self.reply(fields, self.earlier(fields), request, service)
        reply = await answering.write(request, service, stream=stream)
        self.keep(answering)
        return reply

    async def reply(
        self,
        fields: RequestFields,
        earlier: list[Any],
        request: web.Request,
        service: Service,
        *,
        max_tokens: int | None = None,
    ) -> Reply:
        """Return the reply to a request after the items ``earlier``; ``max_tokens`` replaces its limit.

        Raises:
            LlmdError: a field cannot be parsed or supported, or there is no such model.
        """
        named = fields.text("model")
        keep_alive_s = read_keep_alive(fields)
        asked = await service.in_thread(read_request, fields, earlier)
        model = await service.models.resolve(named, allow_path=peer_of(request).is_unix)

        async def prepare(ready: ReadyModel) -> GenerationRequest:
            prepared = await service.in_thread(asked.request, ready.text, ready.window)
            if max_tokens is None:
                return prepared
            return structs.replace(prepared, end=structs.replace(prepared.end, max_tokens=max_tokens))

        prepared = PreparedRequest(model, fields.ignored + asked.ignored, prepare, keep_alive_s)
        return Reply(prepared, asked, named or model.name)

    def keep(self, answered: Reply) -> Stored | None:
        """Store a complete response if its request wants that; return it, None if it is not complete."""
        if answered.body is None:
            return None
        items = [*answered.asked.question.items, *answered.body["output"]]
        if answered.asked.echo["store"]:
            self._store.put(current_record().key, answered.body, items)
        return Stored(answered.body, items)

    async def show(self, request: web.Request, _service: Service) -> web.Response:
        """Return a stored response."""
        response_id = _id_of(request)
        stored = self._store.get(current_record().key, response_id)
        return _unknown(request, response_id) if stored is None else json_response(stored.body)

    async def delete(self, request: web.Request, _service: Service) -> web.Response:
        """Delete a stored response."""
        response_id = _id_of(request)
        if not self._store.delete(current_record().key, response_id):
            return _unknown(request, response_id)
        return json_response({"id": response_id, "object": "response", "deleted": True})

    async def count(self, request: web.Request, service: Service) -> web.Response:
        """Count the prompt tokens of a conversation, without the engine."""
        fields = RequestFields(await read_object(request))
        named = fields.text("model")
        question = await service.in_thread(read_input, fields, self.earlier(fields))
        return counted(await count_tokens(request, service, named, question.prompt))

    def earlier(self, fields: RequestFields) -> list[Any]:
        """Return the items of the stored response that a request continues.

        Raises:
            BadRequestError: there is no such response.
        """
        response_id = fields.text("previous_response_id")
        if response_id is None:
            return []
        stored = self._store.get(current_record().key, response_id)
        if stored is None:
            raise BadRequestError(
                f"there is no response {response_id}",
                code="previous_response_not_found",
                param="previous_response_id",
                hint="send store: true to keep a response; only the newest are kept, until the daemon ends",
            )
        return stored.items


def _id_of(request: web.Request) -> str:
    return request.path.partition("/responses/")[2].strip("/")


def _unknown(request: web.Request, response_id: str) -> web.Response:
    message = f"there is no response {response_id}; only those with store: true are kept"
    return error_response(request, Problem(404, NOT_FOUND, "response_not_found", message))
