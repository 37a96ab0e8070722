"""The text side of a served model: conversations and prompts to tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from llmd.api.errors import TemplateError
from llmd.chat.generation_defaults import GenerationDefaults, read_generation_defaults
from llmd.chat.grammars import ModelGrammars
from llmd.chat.prompt import encode_prompt
from llmd.chat.stop_tokens import end_of_turn_ids, stop_token_ids
from llmd.chat.template_files import ChatTemplate, load_chat_template
from llmd.chat.templates import TemplateRenderer
from llmd.chat.tokenizer import Tokenizer
from llmd.chat.tools import ToolChoice
from llmd.models.config_file import read_config


class ChatPrompt(Struct, frozen=True):
    """A conversation and how it becomes a prompt. ``tools`` are in OpenAI's shape, as `prepare_tools` returns them."""

    messages: Sequence[Mapping[str, Any]]
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    variables: Mapping[str, Any] = {}
    tools: Sequence[Mapping[str, Any]] = ()
    tool_choice: ToolChoice = ToolChoice()


class ModelText(Struct, frozen=True):
    """Tokenizer, template, grammars and stop tokens. Everything here may block: call it in a thread.

    ``template`` may be the reason why there is none.
    """

    tokenizer: Tokenizer
    renderer: TemplateRenderer
    template: ChatTemplate | TemplateError
    defaults: GenerationDefaults
    stop_ids: tuple[int, ...]
    grammars: ModelGrammars

    def encode_text(self, text: str) -> tuple[int, ...]:
        """A plain prompt: BOS once, special tokens read as such."""
        return tuple(self.tokenizer.encode(text))

    def encode_chat(self, prompt: ChatPrompt) -> tuple[int, ...]:
        """A conversation in the model's own form.

        Raises:
            TemplateError: the model has no template, or it is broken or too slow.
            RequestError: the messages are malformed, or the template refuses them.
        """
        if isinstance(self.template, TemplateError):
            raise self.template
        rendered = self.renderer.render(
            self.template,
            prompt.messages,
            tools=() if prompt.tool_choice.mode == "none" else prompt.tools,
            add_generation_prompt=prompt.add_generation_prompt,
            continue_final_message=prompt.continue_final_message,
            extra=prompt.variables,
        )
        return tuple(encode_prompt(self.tokenizer, rendered))


def load_model_text(directory: Path, renderer: TemplateRenderer) -> ModelText:
    """Read a model directory's text files.

    Raises:
        ModelError: the directory is no model; the tokenizer or ``generation_config.json`` cannot be used.
    """
    # Only a daemon with a model needs the three tokenizer libraries; importing them takes a tenth of its start.
    from llmd.chat.tokenizer_loader import load_tokenizer

    read_config(directory)  # a directory without one is no model: said before its tokenizer is missed
    tokenizer = load_tokenizer(directory)
    template = _template(directory, tokenizer)
    stops = stop_token_ids(directory, tokenizer)
    if isinstance(template, ChatTemplate):
        stops += end_of_turn_ids(renderer, template, tokenizer)
    stop_ids = tuple(sorted(set(stops)))
    return ModelText(
        tokenizer=tokenizer,
        renderer=renderer,
        template=template,
        defaults=read_generation_defaults(directory),
        stop_ids=stop_ids,
        grammars=ModelGrammars(tokenizer, stop_ids),
    )


def _template(directory: Path, tokenizer: Tokenizer) -> ChatTemplate | TemplateError:
    """A model without a template still completes prompts; who chats with it gets the reason."""
    try:
        return load_chat_template(directory, tokenizer)
    except TemplateError as error:
        return error
