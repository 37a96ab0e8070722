"""``POST /api/generate``."""

from __future__ import annotations

from aiohttp import web
from msgspec import Struct, structs

from llmd.chat.derived_text import with_template
from llmd.chat.fill_in_middle import FillInMiddle
from llmd.chat.model_text import ChatPrompt, ModelText
from llmd.chat.truncation import Fitted, fit_tokens
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.ollama.lines import said_in_generate
from llmd.server.dialects.ollama.load_unload import load_or_unload
from llmd.server.dialects.ollama.messages import refuse_images
from llmd.server.dialects.ollama.names import resolve
from llmd.server.dialects.ollama.reply import Reply, write_reply
from llmd.server.dialects.ollama.request import OllamaRequest, read_request, read_template, think_variables
from llmd.server.generation.generation import GenerationRequest
from llmd.server.generation.prepared_request import PreparedRequest
from llmd.server.http.bodies import read_object
from llmd.server.models.served_model import ReadyModel
from llmd.server.service import Service


class GenerateRequest(Struct, frozen=True):
    """The prompt and its context."""

    prompt: str
    suffix: str = ""
    """Text after the answer: the answer fills the gap."""
    system: str = ""
    template: str = ""
    raw: bool = False
    """Send the prompt to the model without a template."""
    context: tuple[int, ...] = ()
    """Tokens of an earlier prompt and answer, which this request continues."""

    @property
    def continues(self) -> bool:
        """Whether the answer continues the prompt's text."""
        return self.raw or bool(self.suffix)


async def answer(request: web.Request, service: Service) -> web.StreamResponse:
    """Answer a prompt; without one, load or unload the model."""
    body = await read_object(request)
    fields = RequestFields(body)
    question = read_generate(fields)
    asked = read_request(fields, service.models)
    if not question.prompt and not question.continues:
        return await load_or_unload(request, service, asked, said_in_generate)
    model = await resolve(request, service, asked.name)

    async def prepare(ready: ReadyModel) -> GenerationRequest:
        return await service.in_thread(ask, ready, question, asked)

    prepared = PreparedRequest(model, asked.ignored, prepare, asked.keep_alive_s)
    answering = Reply(
        prepared, asked.name, said_in_generate, stream=asked.stream, with_context=not question.continues
    )
    return await write_reply(request, service, answering)


def read_generate(fields: RequestFields) -> GenerateRequest:
    """Parse the prompt.

    Raises:
        BadRequestError: there are images, or a raw prompt has fields that only a template can use.
    """
    refuse_images({"images": fields.value("images")}, "images")
    question = GenerateRequest(
        prompt=fields.text("prompt") or "",
        suffix=fields.text("suffix") or "",
        system=fields.text("system") or "",
        template=read_template(fields),
        raw=fields.boolean("raw"),
        context=fields.token_ids("context"),
    )
    if question.raw and (question.system or question.context or question.template):
        raise BadRequestError(
            "a raw prompt takes no system text, template or context",
            code="invalid_value",
            param="raw",
            hint="write them into the prompt, or remove raw",
        )
    return question


def ask(ready: ReadyModel, question: GenerateRequest, asked: OllamaRequest) -> GenerationRequest:
    """Return the request to the engine. Blocks."""
    text = ready.text
    stops: tuple[int, ...] = ()
    conversation: ChatPrompt | None = None
    if question.suffix:
        middle = FillInMiddle.of(text.tokenizer)
        tokens, stops = middle.encode(question.prompt, question.suffix), middle.stop_ids
    elif question.raw:
        tokens = text.encode_text(question.prompt)
    else:
        conversation = read_conversation(text, question, asked)
        tokens = encode(text, question, conversation)
    room = asked.prompt_room(ready)
    fitted = Fitted(tokens) if room is None else fit_tokens(tokens, room, asked.options.num_keep)
    request = asked.request(text, fitted, conversation=conversation, param="prompt")
    return structs.replace(request, end=structs.replace(request.end, token_ids=stops))


def read_conversation(text: ModelText, question: GenerateRequest, asked: OllamaRequest) -> ChatPrompt:
    """Return the prompt as a user message."""
    system = [{"role": "system", "content": question.system}] if question.system else []
    messages = [*system, {"role": "user", "content": question.prompt}]
    return ChatPrompt(messages, variables=think_variables(asked.think, text, asked.name))


def encode(text: ModelText, question: GenerateRequest, conversation: ChatPrompt) -> tuple[int, ...]:
    """Encode the conversation, after the context if there is one."""
    if question.template:
        text = with_template(text, question.template)
    if not question.context:
        return text.encode_chat(conversation)
    # The opening messages of the model are already at the start of the context.
    tokens = structs.replace(text, opening=()).encode_chat(conversation)
    begins_with_bos = text.tokenizer.bos_id is not None and tokens[:1] == (text.tokenizer.bos_id,)
    return question.context + (tokens[1:] if begins_with_bos else tokens)
