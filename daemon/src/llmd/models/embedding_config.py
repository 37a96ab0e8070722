"""Read the embedding settings of a model: sentence-transformers' files, and fields of ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from llmd.api.embedding import Embedding, Pooling
from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.api.plugins import Config
from llmd.models.class_names import named_class
from llmd.models.files import is_named
from llmd.models.json_file import DAMAGED, converted, read_object
from llmd.models.modules_file import MODULES_FILE, SCORE, Module, read_modules

POOLING_FILE = "config.json"
TEXT_FILE = "sentence_bert_config.json"
PROMPTS_FILE = "config_sentence_transformers.json"
TOKENIZER_FILE = "tokenizer_config.json"
MAX_BYTES = 16_000_000

# In the order in which sentence-transformers concatenates them. Keys are the names in the newer form of the
# file; the first item is the flag in the older form.
POOLINGS: Mapping[str, tuple[str, Pooling]] = {
    "cls": ("pooling_mode_cls_token", "cls"),
    "max": ("pooling_mode_max_tokens", "max"),
    "mean": ("pooling_mode_mean_tokens", "mean"),
    "mean_sqrt_len_tokens": ("pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len"),
    "weightedmean": ("pooling_mode_weightedmean_tokens", "weighted_mean"),
    "lasttoken": ("pooling_mode_lasttoken", "last"),
}
NESTED_FAMILIES = ("qwen3",)
"""``model_type`` of embedding models with nested vectors that no file declares (Zhang et al. 2025, "Qwen3
Embedding")."""


_Form = TypeVar("_Form", bound=msgspec.Struct)


def embeds(directory: Path, config: Config) -> bool:
    """Whether a model is for embedding, decided without a plan.

    It is if it has the files of sentence-transformers, or if its class is one without a head (transformers
    names these Model) or an encoder for masked tokens.

    Raises:
        CheckpointError: a file is damaged.
    """
    is_headless = named_class(config).endswith(("Model", "ForMaskedLM"))
    return is_headless or _embedding_modules(directory) is not None


def read_embedding(directory: Path, config: Config) -> Embedding | None:
    """Read the files of sentence-transformers; return None if there are none, or if they describe a reranker.

    Raises:
        CheckpointError: a file is damaged or invalid.
        UnsupportedModelError: the model has modules after the pooling, or pools in a way that llmd does not
            support.
    """
    modules = _embedding_modules(directory)
    if modules is None:
        return None
    pooling, *rest = _pooling_modules(directory, modules)
    files = pooling.folder(directory) / POOLING_FILE
    settings = read_object(files, max_bytes=MAX_BYTES)
    prompts = _prompts(directory / PROMPTS_FILE)
    if settings.get("include_prompt") is False:
        prompts = _without_prompts(prompts, files)
    text = _text_settings(directory / TEXT_FILE)
    return _with_nesting(
        Embedding(
            _poolings(settings, files),
            normalizes=bool(rest),
            max_len=text.max_seq_length or _tokenizer_limit(directory / TOKENIZER_FILE),
            lower_cases=text.do_lower_case,
            prompts=prompts.prompts,
            default_prompt=prompts.default,
        ),
        config,
    )


def check_direction(config: Config, path: Path) -> None:
    """Refuse a decoder that was retrained to attend in both directions: a causal plan gives wrong vectors.

    Raises:
        UnsupportedModelError: the configuration asks for bidirectional attention.
    """
    for field, value in (("is_causal", False), ("use_bidirectional_attention", True)):
        if config.get(field) is value:
            raise UnsupportedModelError(
                f"{path}: {field} is {str(value).lower()}: tokens attend to later tokens, which llmd does "
                "not support for this architecture",
                hint="use a causal model such as Qwen3-Embedding, or an encoder such as BERT",
            )


def default_embedding(config: Config, *, causal: bool) -> Embedding:
    """Return the settings of a model that has no head and no files with embedding settings.

    In a causal model only the last row has attended to the whole text.
    """
    return _with_nesting(Embedding(("last",) if causal else ("mean",)), config)


def _with_nesting(embedding: Embedding, config: Config) -> Embedding:
    dimensions = tuple(config.get("matryoshka_dimensions") or ())
    nested = config.get("is_matryoshka", config.get("model_type") in NESTED_FAMILIES)
    return msgspec.structs.replace(embedding, nested=bool(nested or dimensions), nested_dimensions=dimensions)


def _embedding_modules(directory: Path) -> Sequence[Module] | None:
    """Return the modules of an embedding model; None if it is a reranker or has no such file."""
    modules = read_modules(directory)
    return None if modules and modules[-1].kind == SCORE else modules


def _pooling_modules(directory: Path, modules: Sequence[Module]) -> Sequence[Module]:
    """Return the pooling module and the normalisation module, if there is one.

    Raises:
        UnsupportedModelError: there are other modules; the message names them.
    """
    path, kinds = directory / MODULES_FILE, [module.kind for module in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        raise UnsupportedModelError(
            f"{path}: the modules are {', '.join(kinds) or 'none'}; llmd supports Transformer, Pooling and "
            "Normalize, in this order",
            hint="use a model with only these modules",
        )
    if not modules[0].is_root:
        raise UnsupportedModelError(
            f"{path}: the transformer is in the folder {modules[0].path}",
            hint='copy the files of that folder next to modules.json, and set its path there to ""',
        )
    return modules[1:]


def _poolings(values: Mapping[str, Any], path: Path) -> tuple[Pooling, ...]:
    named = values.get("pooling_mode", [])
    names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    names = names or [name for name, (flag, _) in POOLINGS.items() if values.get(flag) is True]
    unknown = [name for name in names if not isinstance(name, str) or name not in POOLINGS]
    if unknown:
        raise UnsupportedModelError(
            f"{path}: pooling_mode is {unknown[0]!r}; supported are {', '.join(POOLINGS)}",
            hint="use a model that pools in one of these ways",
        )
    if not names:
        raise CheckpointError("names no pooling", file=str(path), hint=DAMAGED)
    return tuple(POOLINGS[name][1] for name in names)


class _TextSettings(msgspec.Struct, frozen=True):
    max_seq_length: int | None = None
    do_lower_case: bool = False


class _Prompts(msgspec.Struct, frozen=True):
    prompts: dict[str, str] = {}
    default_prompt_name: str | None = None

    @property
    def default(self) -> str:
        """The text put before each input if a request names no prompt."""
        return self.prompts[self.default_prompt_name] if self.default_prompt_name is not None else ""


def _text_settings(path: Path) -> _TextSettings:
    settings = _read(path, _TextSettings)
    if settings.max_seq_length is not None and settings.max_seq_length < 1:
        raise CheckpointError("max_seq_length is not above 0", file=str(path), hint=DAMAGED)
    return settings


def _tokenizer_limit(path: Path) -> int | None:
    """Return the maximum length if no other file states it. A huge value means that there is no limit."""
    values = read_object(path, max_bytes=MAX_BYTES) if is_named(path) else {}
    limit = values.get("model_max_length")
    return limit if isinstance(limit, int) and limit > 0 else None


def _prompts(path: Path) -> _Prompts:
    known = _read(path, _Prompts)
    if known.default_prompt_name is not None and known.default_prompt_name not in known.prompts:
        raise CheckpointError(
            f"there is no prompt {known.default_prompt_name!r}", file=str(path), hint=DAMAGED
        )
    return known


def _without_prompts(known: _Prompts, path: Path) -> _Prompts:
    """Return no prompts: this model excludes them from its pooling, but llmd pools the whole text."""
    if known.default:
        raise UnsupportedModelError(
            f"{path}: the prompt {known.default!r} must be left out of the pooling, which llmd cannot do",
            hint="remove default_prompt_name from config_sentence_transformers.json, and send texts without "
            "a prompt",
        )
    return _Prompts()


def _read(path: Path, form: type[_Form]) -> _Form:
    """Read a file of settings; return the defaults if it is missing."""
    values = read_object(path, max_bytes=MAX_BYTES) if is_named(path) else {}
    return converted(values, form, file=str(path))
