"""``POST /v1/chat/completions/input_tokens``: counts prompt tokens, as llama.cpp does."""

from __future__ import annotations

from aiohttp import web

from llmd.requests.fields import RequestFields
from llmd.server.dialects.openai.chat import read_prompt
from llmd.server.dialects.openai.tools import read_tools_aside
from llmd.server.generation.counting import count_tokens
from llmd.server.http.bodies import read_object
from llmd.server.http.json_response import json_response
from llmd.server.service import Service


async def count_chat(request: web.Request, service: Service) -> web.Response:
    """Count the prompt tokens of a chat, including its tools."""
    fields = RequestFields(await read_object(request))
    prompt = read_prompt(fields, await read_tools_aside(fields, service))
    return counted(await count_tokens(request, service, fields.text("model"), prompt))


def counted(num_tokens: int) -> web.Response:
    """Return a token count in OpenAI's format."""
    return json_response({"object": "response.input_tokens", "input_tokens": num_tokens})
