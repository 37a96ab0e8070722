"""``POST /api/chat``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web
from msgspec import structs

from llmd.chat.model_text import ChatPrompt, ModelText
from llmd.chat.templates.message_keys import CHAT_KEYS, unknown_keys
from llmd.chat.tools.choice import prepare_tools
from llmd.chat.truncation import Fitted, fit_messages
from llmd.requests.fields import RequestFields
from llmd.server.dialects.ollama.lines import said_in_chat
from llmd.server.dialects.ollama.load_unload import load_or_unload
from llmd.server.dialects.ollama.messages import read_messages
from llmd.server.dialects.ollama.names import resolve
from llmd.server.dialects.ollama.reply import Reply, write_reply
from llmd.server.dialects.ollama.request import read_request, think_variables
from llmd.server.generation.generation import GenerationRequest
from llmd.server.generation.prepared_request import PreparedRequest
from llmd.server.http.bodies import read_object
from llmd.server.models.served_model import ReadyModel
from llmd.server.service import Service


async def answer(request: web.Request, service: Service) -> web.StreamResponse:
    """Answer a conversation; without messages, load or unload the model."""
    fields = RequestFields(await read_object(request))
    prompt = read_prompt(fields)
    asked = read_request(fields, service.models)
    if not prompt.messages:
        return await load_or_unload(request, service, asked, said_in_chat)
    model = await resolve(request, service, asked.name)

    async def prepare(ready: ReadyModel) -> GenerationRequest:
        variables = think_variables(asked.think, ready.text, asked.name)
        thinking = structs.replace(prompt, variables=variables)
        tokens = await service.in_thread(encode, ready.text, thinking, asked.prompt_room(ready))
        return asked.request(ready.text, tokens, conversation=thinking)

    ignored = asked.ignored + unknown_keys(prompt.messages, CHAT_KEYS)
    prepared = PreparedRequest(model, ignored, prepare, asked.keep_alive_s)
    return await write_reply(request, service, Reply(prepared, asked.name, said_in_chat, stream=asked.stream))


def read_prompt(fields: RequestFields) -> ChatPrompt:
    """Parse the conversation. If it ends with text of the assistant, that is continued."""
    messages = read_messages(fields)
    tools = fields.value("tools") or []
    if not isinstance(tools, list):
        raise fields.invalid("tools", "a list of tools")
    ends_open = bool(messages) and messages[-1]["role"] == "assistant" and not messages[-1].get("tool_calls")
    return ChatPrompt(
        messages,
        add_generation_prompt=not ends_open,
        continue_final_message=ends_open,
        tools=prepare_tools(tools),
    )


def encode(text: ModelText, prompt: ChatPrompt, most: int | None) -> Fitted:
    """Encode the conversation, dropping its oldest messages if it exceeds ``most`` tokens. Blocks."""

    def tokens(messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
        return text.encode_chat(structs.replace(prompt, messages=messages))

    return Fitted(tokens(prompt.messages)) if most is None else fit_messages(tokens, prompt.messages, most)
