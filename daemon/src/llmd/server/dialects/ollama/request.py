"""The request fields that generate and chat share."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from llmd.api.errors import RequestError, TemplateError
from llmd.api.messages import Grammar
from llmd.chat.capabilities import knows_reasoning
from llmd.chat.model_text import ChatPrompt, ModelText
from llmd.chat.truncation import Fitted, prompt_room
from llmd.grammar.closed_objects import close_objects
from llmd.grammar.json_schema import schema_grammar
from llmd.registry.modelfile import is_go_template
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.ollama.names import read_name
from llmd.server.dialects.ollama.options import Options, read_options, with_fallbacks
from llmd.server.generation.generation import GenerationRequest
from llmd.server.models.keep_alive import read_keep_alive
from llmd.server.models.model_table import ModelTable
from llmd.server.models.served_model import ReadyModel

MAX_TOP_LOGPROBS = 20
LEVELS = ("low", "medium", "high", "max")
Think = bool | str | None


class OllamaRequest(Struct, frozen=True):
    """The common fields."""

    name: str
    stream: bool
    options: Options
    think: Think
    grammar: Grammar | None
    truncate: bool
    """Whether to cut a prompt that is too long."""
    keep_alive_s: float | None
    ignored: tuple[str, ...]

    def prompt_room(self, ready: ReadyModel) -> int | None:
        """Return how many tokens a prompt may have before it is cut; None: it must not be cut."""
        window = min(ready.window, self.options.window or ready.window)
        return prompt_room(window, self.options.end.max_tokens) if self.truncate else None

    def request(
        self, text: ModelText, prompt: Fitted, *, conversation: ChatPrompt | None, param: str = "messages"
    ) -> GenerationRequest:
        """Return the request for the engine; without a conversation, it continues the text of the prompt."""
        return GenerationRequest(
            prompts=(prompt.tokens,),
            truncated_tokens=prompt.truncated_tokens,
            sampling=with_fallbacks(self.options.sampling, text.defaults),
            end=self.options.end,
            at_text_start=conversation is not None and not conversation.continue_final_message,
            conversation=conversation,
            param=param,
            window=self.options.window,
            grammar=self.grammar,
            grammar_param="format",
        )


def read_request(fields: RequestFields, table: ModelTable) -> OllamaRequest:
    """Read the common fields. Read all other fields first, so that ``ignored`` is complete.

    Options of a derived model apply if the request does not set them.

    Raises:
        BadRequestError: a field has an invalid value.
    """
    name = read_name(fields)
    options = _with_parameters(fields.nested("options"), name, table)
    read = read_options(options, read_logprobs(fields))
    return OllamaRequest(
        name=name,
        stream=fields.boolean("stream", default=True),
        options=read,
        think=read_think(fields),
        grammar=read_format(fields),
        truncate=fields.boolean("truncate"),
        keep_alive_s=read_keep_alive(fields),
        ignored=(*fields.ignored, *options.ignored),
    )


def _with_parameters(options: RequestFields, name: str, table: ModelTable) -> RequestFields:
    found = table.derived_of(name)
    if found is None:
        return options
    given = {name: options.value(name) for name in options.names}
    return RequestFields({**found[1].parameters, **given}, "options.")


def read_logprobs(fields: RequestFields) -> int | None:
    """Return how many alternatives are returned with each token; None: no logprobs."""
    wanted = fields.boolean("logprobs")
    top = fields.integer("top_logprobs", 0, MAX_TOP_LOGPROBS)
    if top and not wanted:
        raise BadRequestError("top_logprobs needs logprobs: true", code="invalid_value", param="top_logprobs")
    return (top or 0) if wanted else None


def read_format(fields: RequestFields) -> Grammar | None:
    """Read ``json`` or a schema, whose objects allow no undeclared properties;
    an empty text means no format.
    """
    value = fields.value("format")
    if value in (None, ""):
        return None
    if value == "json":
        return Grammar("json_object")
    if not isinstance(value, dict):
        raise fields.invalid("format", 'empty, "json", or a JSON schema')
    return schema_grammar(close_objects(value))


def read_template(fields: RequestFields) -> str:
    """Read a Jinja chat template that replaces the model's own; empty if there is none.

    Raises:
        BadRequestError: it is a Go template, the kind that Ollama uses.
    """
    template = fields.text("template") or ""
    if is_go_template(template):
        raise BadRequestError(
            "template is a Go template; llmd renders only Jinja templates",
            code="unsupported_parameter",
            param="template",
            hint="write it in Jinja, like chat_template in tokenizer_config.json",
        )
    return template


def read_think(fields: RequestFields) -> Think:
    """Read whether, or how much, the model should think; None: the model's default."""
    value = fields.value("think")
    if value in ("", None):
        return None
    if isinstance(value, bool) or value in LEVELS:
        return value  # type: ignore[no-any-return]
    raise fields.invalid("think", f"true, false or one of {', '.join(LEVELS)}")


def think_variables(think: Think, text: ModelText, name: str) -> dict[str, Any]:
    """Return the template variables that control thinking.

    Raises:
        RequestError: the request wants thinking, but the model does not support it.
    """
    if think is None:
        return {}
    if think is not False and not _can_think(text):
        raise RequestError(
            f"{name} does not support thinking", param="think", hint="leave think out, or send think: false"
        )
    switch = {"enable_thinking": think is not False, "thinking": think is not False}
    return switch | ({"reasoning_effort": think} if isinstance(think, str) else {})


def _can_think(text: ModelText) -> bool:
    template = text.template
    return not isinstance(template, TemplateError) and any(map(knows_reasoning, template.sources.values()))
