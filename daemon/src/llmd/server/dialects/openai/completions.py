"""``POST /v1/completions``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web
from msgspec import structs

from llmd.api.errors import RequestError
from llmd.chat.fill_in_middle import FillInMiddle
from llmd.chat.model_text import ModelText
from llmd.requests.beams import read_beams, refuse_scores, unused_by
from llmd.requests.ending import read_end
from llmd.requests.fields import BadRequestError, RequestFields, is_token_id
from llmd.requests.grammars import read_grammar
from llmd.requests.sampling import read_sampling
from llmd.server.dialects.openai.completion_shape import CompletionShape
from llmd.server.dialects.openai.fields import (
    MAX_PRIORITY,
    MAX_TOP_LOGPROBS,
    REFUSED,
    read_choices,
    read_max_tokens,
    read_prompt_logprobs,
    refuse,
)
from llmd.server.dialects.openai.reply import Reply, ReplyHead, read_stream_options, write_reply
from llmd.server.generation.generation import GenerationRequest
from llmd.server.generation.prepared_request import PreparedRequest
from llmd.server.http.bodies import read_object
from llmd.server.http.guards import peer_of
from llmd.server.models.keep_alive import read_keep_alive
from llmd.server.models.served_model import ReadyModel
from llmd.server.service import Service

DEFAULT_MAX_TOKENS = 16
MAX_PROMPTS = 256
REFUSED_IN_COMPLETIONS: Mapping[str, tuple[tuple[Any, ...], str]] = {
    "add_special_tokens": ((True,), "BOS is added if the tokenizer has it"),
    "prompt_embeds": ((), "prompts are text or token ids"),
}
Prompt = str | tuple[int, ...]


async def answer(request: web.Request, service: Service) -> web.StreamResponse:
    """Continue prompts."""
    fields = RequestFields(await read_object(request))
    asked = fields.text("model")
    options, ignored_options = read_stream_options(fields)
    prompts = read_prompts(fields)
    suffix = fields.text("suffix") or ""
    max_tokens = read_max_tokens(fields)
    logprobs = fields.integer("logprobs", 0, MAX_TOP_LOGPROBS)
    echo = fields.boolean("echo")
    prompt_logprobs = read_prompt_logprobs(fields, streamed=options.stream)
    echoed_logprobs = logprobs if echo else None
    if suffix and echoed_logprobs is not None:
        raise BadRequestError(
            "echo with logprobs cannot be combined with a suffix",
            code="unsupported_parameter",
            param="echo",
            hint="remove suffix, echo or logprobs",
        )
    return_token_ids = fields.boolean("return_token_ids")
    keep_alive_s = read_keep_alive(fields)
    n = read_choices(fields)
    beams = read_beams(fields, n)
    refuse_scores(beams, prompt_logprobs, "prompt_logprobs")
    refuse_scores(beams, echoed_logprobs, "echo")
    bound = read_grammar(fields)
    template = GenerationRequest(
        prompts=(),
        sampling=read_sampling(fields, logprobs),
        end=read_end(fields, DEFAULT_MAX_TOKENS if max_tokens is None else max_tokens),
        n=n,
        skip_special=fields.boolean("skip_special_tokens", default=True),
        at_text_start=False,
        param="prompt",
        priority=fields.integer("priority", -MAX_PRIORITY, MAX_PRIORITY) or 0,
        cache_salt=fields.text("cache_salt") or "",
        grammar=bound.grammar,
        grammar_param=bound.param,
        prompt_logprobs=max((w for w in (prompt_logprobs, echoed_logprobs) if w is not None), default=None),
        beams=beams,
    )
    if beams is None:
        fields.refuse("best_of", (1, n), "every answer is returned")
    refuse(fields, {**REFUSED, **REFUSED_IN_COMPLETIONS})
    model = await service.models.resolve(asked, allow_path=peer_of(request).is_unix)
    head = ReplyHead.new("cmpl", asked or model.name, service.version)

    async def prepare(ready: ReadyModel) -> GenerationRequest:
        return await service.in_thread(with_tokens, ready.text, template, prompts, suffix)

    def shape(ready: ReadyModel, prepared: GenerationRequest) -> CompletionShape:
        echoed = zip(prompts, prepared.prompts, strict=True) if echo else ()
        echoes = [prompt_text(ready.text, p, t) for p, t in echoed] or [""] * len(prompts)
        return CompletionShape(
            head,
            prepared,
            ready.text.tokenizer,
            echoes,
            return_token_ids=return_token_ids,
            echoes_scores=echo,
            num_prompt_logprobs=prompt_logprobs,
        )

    ignored = (*fields.ignored, *ignored_options, *bound.ignored, *unused_by(beams, fields))
    prepared = PreparedRequest(model, ignored, prepare, keep_alive_s)
    return await write_reply(request, service, Reply(prepared, options, shape))


def read_prompts(fields: RequestFields) -> tuple[Prompt, ...]:
    """Parse one or several prompts, as text or token ids. A missing prompt is empty: BOS alone."""
    value = fields.value("prompt")
    value = "" if value in (None, []) else value
    several = value if isinstance(value, list) and value and not is_token_id(value[0]) else [value]
    prompts = tuple(_prompt(item) for item in several)
    if len(prompts) > MAX_PROMPTS or any(prompt is None for prompt in prompts):
        raise fields.invalid("prompt", f"text, token ids, or a list of at most {MAX_PROMPTS} of them")
    return tuple(prompt for prompt in prompts if prompt is not None)


def _prompt(value: object) -> Prompt | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(is_token_id(item) for item in value):
        return tuple(value)
    return None


def with_tokens(
    text: ModelText, template: GenerationRequest, prompts: tuple[Prompt, ...], suffix: str
) -> GenerationRequest:
    """Return the request with its prompts encoded. With a suffix, answers fill in the middle.

    Raises:
        RequestError: there is a suffix, but the model has no tokens for it or a prompt is not text.
    """
    if not suffix:
        return template.with_prompts(
            tuple(text.encode_text(prompt) if isinstance(prompt, str) else prompt for prompt in prompts)
        )
    middle = FillInMiddle.of(text.tokenizer)
    prefixes = [prompt for prompt in prompts if isinstance(prompt, str)]
    if len(prefixes) < len(prompts):
        raise RequestError("a prompt with a suffix must be text", param="prompt", hint="send it as text")
    end = structs.replace(template.end, token_ids=(*template.end.token_ids, *middle.stop_ids))
    filled = tuple(middle.encode(prefix, suffix) for prefix in prefixes)
    return structs.replace(template, end=end).with_prompts(filled)


def prompt_text(text: ModelText, prompt: Prompt, tokens: tuple[int, ...]) -> str:
    """Return a prompt as its answer echoes it."""
    return prompt if isinstance(prompt, str) else text.tokenizer.decode(tokens)
