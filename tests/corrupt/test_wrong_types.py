"""A value of another type, in any field of any small file of a model, is a typed error or harmless,
whatever is asked.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from llmd.api import LlmdError, TemplateError
from llmd.chat.answers.stop_tokens import stop_token_ids
from llmd.chat.capabilities import read_capabilities
from llmd.chat.generation_defaults import read_generation_defaults
from llmd.chat.rerankers.reranker_files import read_reranker
from llmd.chat.templates.template_files import load_chat_template
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from llmd.registry.stored_model import describe
from llmd.server.dialects.ollama.description import describe_model
from tests.corrupt.corpus import inspect_model
from tests.corrupt.gguf_cases import write_small_gguf
from tests.corrupt.small_model import CONFIG, tokenizer, write_small_model

JUNK: tuple[Any, ...] = (None, True, 0, -1, 2.5, 10**30, "x", "\ud800", [], [1], ["x"], [[]], {}, {"x": 1})
GGUF_JUNK = (True, 0, -1, 2.5, "x", [1, 2], [True, False], ["x", "y"], 2**31)

TEXT: Mapping[str, Any] = {
    "tokenizer_config.json": {
        "tokenizer_class": "LlamaTokenizer",
        "bos_token": "<s>",
        "eos_token": {"content": "</s>"},
        "extra_special_tokens": {"image_token": "<pad>"},
        "additional_special_tokens": ["<pad>"],
        "added_tokens_decoder": {"256": {"content": "<s>", "special": True}},
        "add_bos_token": True,
        "chat_template": [{"name": "default", "template": "x"}],
        "model_max_length": 100,
    },
    "special_tokens_map.json": {"bos_token": "<s>", "additional_special_tokens": ["<pad>"]},
    "added_tokens.json": {"<s>": 256},
    "generation_config.json": {"do_sample": True, "temperature": 0.5, "top_k": 3, "eos_token_id": [257]},
    "tokenizer.json": {
        **tokenizer(),
        "model": {**tokenizer()["model"], "vocab": {"a": 0, "b": 1}},
    },
}
EMBEDDING: Mapping[str, Any] = {
    "modules.json": [
        {"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ],
    "1_Pooling/config.json": {"pooling_mode_mean_tokens": True, "include_prompt": True},
    "sentence_bert_config.json": {"max_seq_length": 32, "do_lower_case": False},
    "config_sentence_transformers.json": {"prompts": {"query": "q: "}, "default_prompt_name": None},
}
RERANKING: Mapping[str, Any] = {
    "modules.json": [{"path": "1_LogitScore", "type": "sentence_transformers.LogitScore"}],
    "1_LogitScore/config.json": {"true_token_id": 5, "false_token_id": 6},
    "sentence_bert_config.json": {
        "processing_kwargs": {"chat_template": {"add_generation_prompt": True}},
        "modality_config": {"message": {"format": "flat"}},
    },
    "chat_template.json": {"chat_template": "x"},
}
CONFIGS: Mapping[str, Any] = {
    "config.json": {
        **CONFIG,
        **dict.fromkeys(
            ("text_config", "quantization_config", "rope_scaling", "rope_parameters", "is_causal")
        ),
        **dict.fromkeys(("matryoshka_dimensions", "sentence_transformers", "use_bidirectional_attention")),
    }
}


def read_text(directory: Path) -> None:
    tokenizer = load_tokenizer(directory)
    template: Any
    try:
        template = load_chat_template(directory, tokenizer)
    except TemplateError as error:
        template = error
    read_reranker(directory, tokenizer, template)
    stop_token_ids(directory, tokenizer)
    if isinstance(template, TemplateError):
        raise template


QUESTIONS: tuple[Callable[[Path], object], ...] = (
    inspect_model,
    read_text,
    read_generation_defaults,
    read_capabilities,
    lambda directory: describe_model(describe("m", directory)).info(),
)
"""Everything that is asked of the files of a model."""


def answers(directory: Path) -> list[LlmdError]:
    """Ask everything; the errors are returned."""
    refusals = []
    for ask in QUESTIONS:
        try:
            ask(directory)
        except LlmdError as error:
            refusals.append(error)
    return refusals


def places(content: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every value in a file, and of the whole."""
    yield path
    children = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content)
        if isinstance(content, list)
        else ()
    )
    for key, child in children:
        yield from places(child, (*path, key))


def replaced(content: Any, path: tuple[str | int, ...], value: Any) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(content)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


FILES = [
    pytest.param(files, name, id=f"{kind}-{name}")
    for kind, files in {"text": TEXT, "embedding": EMBEDDING, "reranking": RERANKING, "": CONFIGS}.items()
    for name in files
]


@pytest.mark.parametrize(("files", "changed"), FILES)
def test_junk_in_a_json_file_is_refused_or_harmless(
    files: Mapping[str, Any], changed: str, tmp_path: Path
) -> None:
    directory = write_small_model(tmp_path / "qwen3-reranker")  # a name by which models are known, too
    for name, content in files.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(json.dumps(content))
    refusals = []
    for path in places(files[changed]):
        for junk in JUNK:
            (directory / changed).write_text(json.dumps(replaced(files[changed], path, junk)))
            refusals += answers(directory)
    assert refusals
    assert all(error.hint for error in refusals)


KEYS = (
    *(
        "general.architecture",
        "general.type",
        "general.alignment",
        "general.sampling.temp",
        "general.sampling.top_k",
    ),
    *("split.no", "split.count", "split.tensors.count"),
    *(
        f"llama.{key}"
        for key in ("embedding_length", "block_count", "attention.head_count", "context_length")
    ),
    *(
        f"llama.{key}"
        for key in ("rope.scaling.type", "pooling_type", "expert_count", "attention.key_length")
    ),
    *(f"tokenizer.ggml.{key}" for key in ("model", "pre", "tokens", "scores", "token_type", "merges")),
    *(f"tokenizer.ggml.{key}" for key in ("eos_token_id", "add_bos_token", "precompiled_charsmap")),
    *("tokenizer.chat_template", "tokenizer.chat_template.tool_use"),
)


@pytest.mark.parametrize("key", KEYS)
def test_junk_in_the_metadata_of_a_gguf_file_is_refused_or_harmless(key: str, tmp_path: Path) -> None:
    for number, junk in enumerate(GGUF_JUNK):
        directory = write_small_model(tmp_path / str(number))
        write_small_gguf(directory, changes={key: junk})
        assert all(error.hint for error in answers(directory))
