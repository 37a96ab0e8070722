"""``/completion`` and ``/infill``: continue prompts, or fill in text before a suffix."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from msgspec import structs

from llmd.chat.fill_in_middle import FillInMiddle
from llmd.chat.model_text import ModelText
from llmd.requests.fields import RequestFields
from llmd.requests.mixed_text import MixedText, encode_mixed
from llmd.server.dialects.llamacpp.fields import Settings, read_prompts, read_settings
from llmd.server.dialects.llamacpp.reply import Reply, write_reply
from llmd.server.generation.generation import GenerationRequest
from llmd.server.generation.prepared_request import PreparedRequest
from llmd.server.http.bodies import read_object
from llmd.server.http.guards import peer_of
from llmd.server.models.keep_alive import read_keep_alive
from llmd.server.models.served_model import ReadyModel
from llmd.server.service import Service

Prompts = tuple[tuple[int, ...], ...]
Encode = Callable[[ModelText], tuple[Prompts, tuple[int, ...]]]
"""Encodes a request's prompts; also returns token ids that end its answers in addition to the model's own."""


async def complete(request: web.Request, service: Service) -> web.StreamResponse:
    """Continue one or several prompts."""
    fields = RequestFields(await read_object(request))
    prompts = read_prompts(fields)

    def encode(text: ModelText) -> tuple[Prompts, tuple[int, ...]]:
        return tuple(encode_prompt(text, prompt) for prompt in prompts), ()

    return await _answer(request, service, fields, encode)


async def infill(request: web.Request, service: Service) -> web.StreamResponse:
    """Generate the text between ``input_prefix`` and ``input_suffix``."""
    fields = RequestFields(await read_object(request))
    prefix, suffix = fields.text("input_prefix") or "", fields.text("input_suffix") or ""
    begun = fields.text("prompt") or ""
    files = read_files(fields)

    def encode(text: ModelText) -> tuple[Prompts, tuple[int, ...]]:
        middle = FillInMiddle.of(text.tokenizer)
        ids = middle.encode("".join(files) + prefix, suffix)
        written = text.tokenizer.encode_part(begun, parse_special=False, at_start=False)
        return ((*ids, *written),), middle.stop_ids

    return await _answer(request, service, fields, encode)


def encode_prompt(text: ModelText, prompt: MixedText) -> tuple[int, ...]:
    """Encode a prompt. A text, also at the start of a mixed prompt, gets BOS if the tokenizer adds it."""
    return encode_mixed(prompt, text.encode_text, lambda part: text.tokenizer.encode(part, add_special=False))


def read_files(fields: RequestFields) -> list[str]:
    """Return the project's other files, each under its name, to be put before the prefix."""
    files = fields.value("input_extra") or []
    texts = [(file.get("filename"), file.get("text")) for file in files if isinstance(file, dict)]
    if (
        not isinstance(files, list)
        or len(texts) < len(files)
        or not all(isinstance(text, str) for _, text in texts)
    ):
        raise fields.invalid("input_extra", "a list of objects with filename and text")
    return [f"{name or 'file'}\n{text}\n\n" for name, text in texts]


async def _answer(
    request: web.Request, service: Service, fields: RequestFields, encode: Encode
) -> web.StreamResponse:
    settings, asked = read_settings(fields), fields.text("model")
    keep_alive_s = read_keep_alive(fields)
    model = await service.models.resolve(asked, allow_path=peer_of(request).is_unix)

    async def prepare(ready: ReadyModel) -> GenerationRequest:
        return await service.in_thread(_request, ready.text, settings, encode)

    prepared = PreparedRequest(model, fields.ignored, prepare, keep_alive_s)
    return await write_reply(request, service, Reply(prepared, asked or model.name, settings))


def _request(text: ModelText, settings: Settings, encode: Encode) -> GenerationRequest:
    prompts, stop_ids = encode(text)
    return GenerationRequest(
        prompts=prompts,
        sampling=settings.choice(text.tokenizer, text.defaults),
        end=structs.replace(settings.end, token_ids=stop_ids),
        at_text_start=False,
        param="prompt",
        grammar=settings.grammar,
        grammar_param="grammar",
    )
