"""``POST /v1/chat/completions``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from llmd.chat.answers.thinking import effort_budget
from llmd.chat.model_text import ChatPrompt
from llmd.chat.templates.message_keys import CHAT_KEYS, unknown_keys
from llmd.requests.beams import read_beams, refuse_scores, unused_by
from llmd.requests.ending import read_end
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.requests.grammars import read_grammar
from llmd.requests.sampling import MAX_TOKENS, read_sampling
from llmd.server.dialects.openai.chat_calls import CallForms, with_functions
from llmd.server.dialects.openai.chat_shape import ChatShape
from llmd.server.dialects.openai.fields import (
    EFFORTS,
    MAX_PRIORITY,
    REFUSED,
    read_chat_logprobs,
    read_choices,
    read_max_tokens,
    read_prompt_logprobs,
    refuse,
)
from llmd.server.dialects.openai.reply import Reply, ReplyHead, read_stream_options, write_reply
from llmd.server.dialects.openai.tools import ToolUse, read_tools_aside
from llmd.server.generation.chat_messages import check_message
from llmd.server.generation.generation import GenerationRequest
from llmd.server.generation.prepared_request import PreparedRequest
from llmd.server.http.bodies import read_object
from llmd.server.http.guards import peer_of
from llmd.server.models.keep_alive import read_keep_alive
from llmd.server.models.served_model import ReadyModel
from llmd.server.service import Service

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
REASONING_FORMATS = ("auto", "deepseek", "none")
_TEXT_ONLY = "answers are text only"
REFUSED_IN_CHAT: Mapping[str, tuple[tuple[Any, ...], str]] = {
    "audio": ((), _TEXT_ONLY),
    "modalities": ((["text"],), _TEXT_ONLY),
    "web_search_options": ((), "there is no web search"),
    "moderation": ((), "answers are not moderated"),
    "documents": ((), "templates get only the messages"),
    "chat_template": ((), "the model's own template is used"),
    "echo": ((False,), "the last message is not repeated"),
    "add_special_tokens": ((False,), "the model's own template adds special tokens"),
}


async def answer(request: web.Request, service: Service) -> web.StreamResponse:
    """Answer a conversation."""
    fields = RequestFields(await read_object(request))
    asked = fields.text("model")
    options, ignored_options = read_stream_options(fields)
    use = await read_tools_aside(fields, service)
    prompt = read_prompt(fields, use)
    return_token_ids = fields.boolean("return_token_ids")
    keep_alive_s = read_keep_alive(fields)
    bound = read_grammar(fields)
    n = read_choices(fields)
    beams = read_beams(fields, n)
    prompt_logprobs = read_prompt_logprobs(fields, streamed=options.stream)
    refuse_scores(beams, prompt_logprobs, "prompt_logprobs")
    template = GenerationRequest(
        prompts=(),
        sampling=read_sampling(fields, read_chat_logprobs(fields)),
        end=read_end(fields, read_max_tokens(fields)),
        n=n,
        skip_special=fields.boolean("skip_special_tokens", default=True),
        at_text_start=not prompt.continue_final_message,
        priority=fields.integer("priority", -MAX_PRIORITY, MAX_PRIORITY) or 0,
        cache_salt=fields.text("cache_salt") or "",
        conversation=prompt,
        grammar=bound.grammar,
        grammar_param=bound.param,
        prompt_logprobs=prompt_logprobs,
        beams=beams,
    )
    refuse(fields, {**REFUSED, **REFUSED_IN_CHAT})
    model = await service.models.resolve(asked, allow_path=peer_of(request).is_unix)
    head = ReplyHead.new("chatcmpl", asked or model.name, service.version)

    async def prepare(ready: ReadyModel) -> GenerationRequest:
        tokens = await service.in_thread(ready.text.encode_chat, prompt)
        return template.with_prompts((tokens,))

    def shape(ready: ReadyModel, prepared: GenerationRequest) -> ChatShape:
        return ChatShape(
            head,
            prepared,
            ready.text.tokenizer,
            return_token_ids=return_token_ids,
            forms=CallForms(frozenset(use.custom), use.is_legacy),
        )

    ignored = (*fields.ignored, *ignored_options, *bound.ignored, *unused_by(beams, fields))
    ignored += unknown_keys(prompt.messages, CHAT_KEYS)
    prepared = PreparedRequest(model, ignored, prepare, keep_alive_s)
    return await write_reply(request, service, Reply(prepared, options, shape))


def read_prompt(fields: RequestFields, use: ToolUse) -> ChatPrompt:
    """Parse the conversation and its tools.

    A last assistant message is continued, unless the request says otherwise.
    """
    messages = fields.value("messages")
    if not isinstance(messages, list) or not messages:
        raise fields.invalid("messages", "a list of at least one message")
    for place, message in enumerate(messages):
        check_message(message, f"messages[{place}]", ROLES)
    ends_open = messages[-1]["role"] == "assistant"
    begins_new = fields.boolean("add_generation_prompt", default=not ends_open)
    continues = fields.boolean("continue_final_message", default=ends_open and not begins_new)
    if continues and (begins_new or not ends_open):
        raise BadRequestError(
            "continue_final_message requires an assistant message at the end and excludes add_generation_prompt",
            code="invalid_value",
            param="continue_final_message",
        )
    return ChatPrompt(
        [with_functions(message) for message in messages],
        begins_new,
        continues,
        read_variables(fields),
        use.tools,
        use.choice,
        use.bindings(),
        splits_reasoning=read_reasoning_format(fields) != "none",
        reasoning_budget=read_reasoning_budget(fields),
    )


def read_variables(fields: RequestFields) -> dict[str, Any]:
    """Return the template's variables. ``reasoning_effort`` is one of them; ``none`` turns thinking off."""
    variables = fields.value("chat_template_kwargs") or {}
    if not isinstance(variables, dict):
        raise fields.invalid("chat_template_kwargs", "an object")
    effort = fields.text("reasoning_effort")
    if effort is None:
        return variables
    if effort not in EFFORTS:
        raise fields.invalid("reasoning_effort", f"one of {', '.join(EFFORTS)}")
    return {"reasoning_effort": effort} | ({"enable_thinking": False} if effort == "none" else {}) | variables


def read_reasoning_budget(fields: RequestFields) -> int | None:
    """Return vLLM's ``thinking_token_budget``, or the budget of the reasoning effort."""
    budget = fields.integer("thinking_token_budget", 0, MAX_TOKENS)
    return effort_budget(fields.text("reasoning_effort")) if budget is None else budget


def read_reasoning_format(fields: RequestFields) -> str:
    """Return llama.cpp's ``reasoning_format``. ``none``: reasoning stays in the content."""
    form = fields.text("reasoning_format") or "auto"
    if form not in REASONING_FORMATS:
        raise fields.invalid("reasoning_format", f"one of {', '.join(REASONING_FORMATS)}")
    return form
