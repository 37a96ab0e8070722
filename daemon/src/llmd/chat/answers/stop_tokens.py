"""The tokens that end an answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from llmd.api.errors import RequestError, TemplateError
from llmd.chat.generation_defaults import listed_ids, read_generation_defaults
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.chat.templates.template_files import ChatTemplate
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.models.config_file import read_config

_ANSWER = "llmd-answer"


def stop_token_ids(directory: Path, tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return all ids that end an answer, sorted: from generation_config.json, config.json and the tokenizer.

    Raises:
        ModelError: a file cannot be read, or ``eos_token_id`` is neither an id nor a list of ids.
    """
    config = read_config(directory)
    text = config.get("text_config") or {}
    configured = listed_ids(config.get("eos_token_id")) + listed_ids(text.get("eos_token_id"))
    ids = read_generation_defaults(directory).eos_ids + configured + tokenizer.eos_ids
    return tuple(sorted(set(ids)))


def end_of_turn_ids(
    renderer: TemplateRenderer, template: ChatTemplate, tokenizer: Tokenizer
) -> tuple[int, ...]:
    """Return the special token that the template writes after an answer, if any: it ends the model's turn.

    If the template cannot render two plain messages, return nothing; requests will report the error.
    """
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": _ANSWER}]
    try:
        text = renderer.render(template, messages, add_generation_prompt=False).text
    except (RequestError, TemplateError):
        return ()
    after = text.rpartition(_ANSWER)[2].lstrip()
    pieces = tokenizer.specials.split(after)
    return (pieces[0].token.token_id,) if pieces and pieces[0].token else ()


def ids_of(texts: Sequence[str], tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return the ids of those texts that are tokens."""
    ids = (tokenizer.token_id(text) for text in texts)
    return tuple(one for one in ids if one is not None)
