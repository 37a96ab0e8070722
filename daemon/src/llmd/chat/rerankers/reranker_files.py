"""Detect and read rerankers: the files of sentence-transformers' generative cross-encoders."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, structs

from llmd.api.errors import RequestError, TemplateError, TokenizerError
from llmd.chat.json_file import read_json
from llmd.chat.rerankers.qwen3 import is_unmarked_reranker, unmarked_reranker
from llmd.chat.rerankers.reranker import Reranker
from llmd.chat.templates.template_files import ChatTemplate
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.models.config_file import read_config
from llmd.models.files import is_named
from llmd.models.modules_file import SCORE, Module, read_modules

T = TypeVar("T")

NO_RERANKER = RequestError(
    "this model does not rank documents",
    param="model",
    hint="use a reranker such as Qwen3-Reranker",
)


class _Score(Struct, frozen=True):
    true_token_id: int
    false_token_id: int | None = None


class _Processing(Struct, frozen=True):
    chat_template: dict[str, Any] = {}


class _Modality(Struct, frozen=True):
    format: str = "flat"


class _TextSettings(Struct, frozen=True):
    """``sentence_bert_config.json``."""

    processing_kwargs: _Processing | None = None
    modality_config: dict[str, _Modality] = {}

    @property
    def variables(self) -> dict[str, Any]:
        """Further variables of the template."""
        return self.processing_kwargs.chat_template if self.processing_kwargs else {}

    @property
    def wants_parts(self) -> bool:
        """Whether the template reads the content of messages as lists of parts."""
        return self.modality_config.get("message", _Modality()).format != "flat"


class _Prompts(Struct, frozen=True):
    """``config_sentence_transformers.json``."""

    prompts: dict[str, str] = {}
    default_prompt_name: str | None = None

    @property
    def instruction(self) -> str:
        return self.prompts.get(self.default_prompt_name or "", "")


def ranks(directory: Path) -> bool:
    """Return whether a directory holds a generative model that ranks documents.

    Raises:
        ModelError: a file cannot be read.
    """
    return _score_module(directory) is not None or is_unmarked_reranker(
        directory.name, read_config(directory)
    )


def read_reranker(
    directory: Path, tokenizer: Tokenizer, template: ChatTemplate | TemplateError
) -> Reranker | RequestError:
    """Return the reranker of a directory, or the error for requests if it does not rank.

    Raises:
        ModelError: a file is damaged.
    """
    score = _score_module(directory)
    if score is not None:
        return _marked(directory, score, tokenizer, template)
    if is_unmarked_reranker(directory.name, read_config(directory)):
        return unmarked_reranker(tokenizer) or NO_RERANKER
    return NO_RERANKER


def _score_module(directory: Path) -> Module | None:
    modules = read_modules(directory)
    return modules[-1] if modules and modules[-1].kind == SCORE else None


def _marked(
    directory: Path, module: Module, tokenizer: Tokenizer, template: ChatTemplate | TemplateError
) -> Reranker | RequestError:
    path = module.folder(directory) / "config.json"
    score = read_json(path, _Score, error=TokenizerError)
    settings = _optional(directory / "sentence_bert_config.json", _TextSettings)
    if isinstance(template, TemplateError):
        return _refusal(template.message, template.hint)
    if score.false_token_id is None:
        return _refusal(f"{path} has no false_token_id", "use a model that compares two tokens")
    if settings.wants_parts:
        return _refusal("its template expects content as a list of parts", "use a text-only model")
    ids = score.true_token_id, score.false_token_id
    if not all(0 <= token < tokenizer.vocab_size for token in ids):
        raise TokenizerError(
            f"{path} names the tokens {ids}, but the last token id is {tokenizer.vocab_size - 1}",
            hint="the files belong to different models; copy all of them from the same model",
        )
    variables = dict(settings.variables)
    add_generation_prompt = bool(variables.pop("add_generation_prompt", False))
    return Reranker(
        structs.replace(template, variables=template.variables | variables),
        *ids,
        instruction=_optional(directory / "config_sentence_transformers.json", _Prompts).instruction,
        add_generation_prompt=add_generation_prompt,
    )


def _optional(path: Path, form: type[T]) -> T:
    return read_json(path, form, error=TokenizerError) if is_named(path) else form()


def _refusal(reason: str, hint: str) -> RequestError:
    return RequestError(f"this model cannot rank documents: {reason}", param="model", hint=hint)
