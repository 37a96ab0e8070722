"""Load the chat template of a model directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from llmd.api.errors import CheckpointError, TemplateError
from llmd.chat.gguf_text import gguf_templates
from llmd.chat.json_file import read_file, read_json
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tokenizers.tokenizer_config import read_tokenizer_config
from llmd.models.files import is_named


class ChatTemplate(msgspec.Struct, frozen=True):
    """A model's templates, and what they need to render."""

    sources: dict[str, str]
    """Templates by name."""
    variables: dict[str, Any] = {}
    """Special tokens by role (``bos_token``, …), and further variables that the model's files set."""
    special_texts: frozenset[str] = frozenset()
    """Special tokens, which must stay plain text if a request contains them."""

    def source(self, *, with_tools: bool) -> str:
        """Return the template for a conversation: ``tool_use`` for tools, if it exists, else ``default``.

        Raises:
            TemplateError: the model has no such template.
        """
        name = "tool_use" if with_tools and "tool_use" in self.sources else "default"
        if name not in self.sources:
            raise TemplateError(
                f"the model has chat templates named {sorted(self.sources)}, but no {name!r}",
                hint="name one of them 'default' in tokenizer_config.json, or use /v1/completions",
            )
        return self.sources[name]


class _Named(msgspec.Struct, frozen=True):
    name: str
    template: str


class _File(msgspec.Struct, frozen=True):
    chat_template: str | list[_Named] | None = None


def load_chat_template(directory: Path, tokenizer: Tokenizer) -> ChatTemplate:
    """Load the template from a Jinja file, ``tokenizer_config.json``, ``chat_template.json`` or a GGUF file.

    Raises:
        TemplateError: the model has no template, or a file cannot be read.
    """
    sources = template_sources(directory)
    if not sources:
        raise TemplateError(
            f"{directory} has no chat template",
            hint="send prompts to /v1/completions, or put a chat_template.jinja into the model directory",
        )
    return ChatTemplate(sources, *special_variables(tokenizer, read_tokenizer_config(directory).named))


def special_variables(
    tokenizer: Tokenizer, named: Mapping[str, str | list[str]] | None = None
) -> tuple[dict[str, str | list[str]], frozenset[str]]:
    """Return `ChatTemplate.variables` and ``special_texts``.

    The variables are the ``named`` tokens, plus the tokenizer's BOS and EOS if these are not named.
    """
    variables = dict(named or {})
    if tokenizer.bos_id is not None:
        variables.setdefault("bos_token", tokenizer.token_text(tokenizer.bos_id))
    if tokenizer.eos_ids:
        variables.setdefault("eos_token", tokenizer.token_text(tokenizer.eos_ids[0]))
    return variables, frozenset(token.text for token in tokenizer.vocabulary.specials)


def template_sources(directory: Path) -> dict[str, str]:
    """Return the sources of all templates by name; empty if the model has none.

    Raises:
        TemplateError: a file cannot be read.
    """
    sources = _jinja_files(directory)
    for name in ("tokenizer_config.json", "chat_template.json"):
        sources = _json_file(directory / name) | sources if "default" not in sources else sources
    return sources if "default" in sources else {**_in_gguf(directory), **sources}


def _in_gguf(directory: Path) -> Mapping[str, str]:
    try:
        return gguf_templates(directory) or {}
    except CheckpointError as exc:
        raise TemplateError(exc.message, hint=exc.hint) from exc


def _jinja_files(directory: Path) -> dict[str, str]:
    named = {path.stem: path for path in sorted((directory / "additional_chat_templates").glob("*.jinja"))}
    path = directory / "chat_template.jinja"
    paths = {**named, "default": path} if is_named(path) else named
    return {name: _read_text(path) for name, path in paths.items()}


def _read_text(path: Path) -> str:
    try:
        return read_file(path, error=TemplateError).decode()
    except UnicodeDecodeError as exc:
        raise TemplateError(f"{path} is not UTF-8: {exc.reason}", hint="copy the file again") from exc


def _json_file(path: Path) -> dict[str, str]:
    if not is_named(path):
        return {}
    template = read_json(path, _File, error=TemplateError).chat_template
    if isinstance(template, str):
        return {"default": template}
    return {named.name: named.template for named in template or ()}
