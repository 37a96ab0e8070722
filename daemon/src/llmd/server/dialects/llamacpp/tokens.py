"""``/tokenize``, ``/detokenize`` and ``/apply-template``: tokenizer and template without the engine.

vLLM has routes of the same names: a request with ``prompt`` or ``messages`` is vLLM's, one with
``content`` is llama.cpp's.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from llmd.chat.model_text import ChatPrompt, ModelText
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tools.choice import prepare_tools
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.http.bodies import read_object
from llmd.server.http.guards import peer_of
from llmd.server.http.json_response import json_response
from llmd.server.service import Service


async def tokenize(request: web.Request, service: Service) -> web.Response:
    """Return the tokens of a text or a conversation."""
    fields = RequestFields(await read_object(request))
    model = await service.models.resolve(fields.text("model"), allow_path=peer_of(request).is_unix)
    if not {"prompt", "messages"} & set(fields.names):
        body = await service.in_thread(_llamacpp_tokens, await model.text(), fields)
        return json_response(body)
    ready = await model.ready()
    ids = await service.in_thread(_vllm_tokens, ready.text, fields)
    pieces = [ready.text.tokenizer.token_text(i) for i in ids]
    strings = pieces if fields.boolean("return_token_strs") else None
    body = {"count": len(ids), "max_model_len": ready.window, "tokens": ids, "token_strs": strings}
    return json_response(body)


async def detokenize(request: web.Request, service: Service) -> web.Response:
    """Return the text of tokens, under the keys of both servers."""
    fields = RequestFields(await read_object(request))
    ids = fields.token_ids("tokens")
    model = await service.models.resolve(fields.text("model"), allow_path=peer_of(request).is_unix)
    text = await model.text()
    if max(ids, default=0) >= text.tokenizer.vocab_size:
        raise BadRequestError(
            f"tokens contains the id {max(ids)}, but the vocabulary ends at {text.tokenizer.vocab_size - 1}",
            code="invalid_value",
            param="tokens",
        )
    content = await service.in_thread(text.tokenizer.decode, ids)
    return json_response({"content": content, "prompt": content})


async def apply_template(request: web.Request, service: Service) -> web.Response:
    """Render a conversation with the chat template."""
    fields = RequestFields(await read_object(request))
    prompt = read_conversation(fields)
    model = await service.models.resolve(fields.text("model"), allow_path=peer_of(request).is_unix)
    text = await model.text()
    rendered = await service.in_thread(text.render_chat, prompt)
    return json_response({"prompt": rendered.text})


def read_conversation(fields: RequestFields) -> ChatPrompt:
    """Parse messages, tools and template variables."""
    messages = fields.value("messages")
    if not isinstance(messages, list) or not messages:
        raise fields.invalid("messages", "a list of at least one message")
    variables = fields.nested("chat_template_kwargs")
    tools = fields.value("tools") or []
    if not isinstance(tools, list):
        raise fields.invalid("tools", "a list of tools")
    continues = fields.boolean("continue_final_message")
    return ChatPrompt(
        messages,
        add_generation_prompt=fields.boolean("add_generation_prompt", default=not continues),
        continue_final_message=continues,
        variables={name: variables.value(name) for name in variables.names},
        tools=prepare_tools(tools),
    )


def _llamacpp_tokens(text: ModelText, fields: RequestFields) -> dict[str, Any]:
    ids = text.tokenizer.encode(
        fields.text("content") or "",
        add_special=fields.boolean("add_special"),
        parse_special=fields.boolean("parse_special", default=True),
    )
    if not fields.boolean("with_pieces"):
        return {"tokens": ids}
    return {"tokens": [{"id": i, "piece": piece_of(text.tokenizer, i)} for i in ids]}


def _vllm_tokens(text: ModelText, fields: RequestFields) -> list[int]:
    if fields.value("messages") is not None:
        return list(text.encode_chat(read_conversation(fields)))
    prompt = fields.text("prompt") or ""
    return text.tokenizer.encode(prompt, add_special=fields.boolean("add_special_tokens", default=True))


def piece_of(tokenizer: Tokenizer, token_id: int) -> str | list[int]:
    """Return a token as text, or as bytes if it is only a part of a character."""
    content = tokenizer.token_bytes(token_id)
    try:
        return content.decode()
    except UnicodeDecodeError:
        return list(content)
