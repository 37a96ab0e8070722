"""A tiny random model with a tokenizer and a template: everything that a daemon needs to answer.

Its vocabulary is the 256 bytes and three special tokens, so that every text and every half character can come
out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.golden.checkpoint import write_checkpoint
from tests.golden.models.embedding import write_pooling
from tests.golden.models.llama import llama
from tests.golden.models.qwen import qwen3
from tests.golden.models.tiny import TinyModel

CONTEXT_LEN = 512
SEED = 3
SPECIALS = ("<s>", "<|im_start|>", "<|im_end|>")
BOS, TURN_START, TURN_END = range(256, 259)
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ '<|im_start|>' ~ m.role ~ '\\n' ~ m.content ~ '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

# Writes no token after an answer that could end one.
ENDLESS_TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"

# The same for a model that knows tools and reasoning, as Qwen's do.
TOOL_TEMPLATE = (
    "{{ bos_token }}{% for tool in tools or [] %}{{ tool.function.name ~ ' ' }}{% endfor %}"
    "{% for m in messages %}{{ '<|im_start|>' ~ m.role ~ '\n' ~ m.content }}{% for call in m.tool_calls or [] %}"
    "{{ '<tool_call>' ~ (call.function | tojson) ~ '</tool_call>' }}{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% if enable_thinking is defined and not enable_thinking %}{{ '<think>\n\n</think>\n\n' }}{% endif %}{% endif %}"
)


def write_model(
    directory: Path,
    *,
    seed: int = SEED,
    context_len: int = CONTEXT_LEN,
    extra_specials: tuple[str, ...] = (),
    template: str = TEMPLATE,
    eos_id: int | None = TURN_END,
    family: Callable[..., dict[str, Any]] = llama,
) -> Path:
    """Write the model; returns its directory. Extra special tokens follow the others in the vocabulary.
    ``family`` makes a configuration of some fields.

    Without ``eos_id`` and with `ENDLESS_TEMPLATE`, only a limit ends an answer.
    """
    specials = (*SPECIALS, *extra_specials)
    config = family(vocab_size=256 + len(specials), max_position_embeddings=context_len, eos_token_id=eos_id)
    write_checkpoint(TinyModel("served", config, seed=seed), directory)
    (directory / "tokenizer.json").write_text(json.dumps(byte_tokenizer(specials)))
    tokenizer_config = {
        "bos_token": "<s>",
        "eos_token": None if eos_id is None else specials[eos_id - 256],
        "chat_template": template,
        "added_tokens_decoder": {256 + place: {"content": text} for place, text in enumerate(specials)},
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    return directory


def write_embedding_model(
    directory: Path,
    *,
    seed: int = 5,
    context_len: int = CONTEXT_LEN,
    pooling: str = "last",
    normalizes: bool = True,
) -> Path:
    """Write a model that embeds, as Qwen3-Embedding is: its texts end with ``<|im_end|>``.
    Returns its directory.
    """
    config = qwen3(vocab_size=256 + len(SPECIALS), max_position_embeddings=context_len)
    write_checkpoint(TinyModel("embedding", config, seed=seed), directory)
    write_pooling(directory, [pooling], normalizes=normalizes)
    end = {"id": "<|im_end|>", "ids": [TURN_END], "tokens": ["<|im_end|>"]}
    ending = {
        "type": "TemplateProcessing",
        "single": [
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "<|im_end|>", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<|im_end|>": end},
    }
    (directory / "tokenizer.json").write_text(
        json.dumps(byte_tokenizer(SPECIALS) | {"post_processor": ending})
    )
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<s>",
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    return directory


def byte_tokenizer(texts: tuple[str, ...]) -> dict[str, object]:
    vocab = {sign: byte for byte, sign in enumerate(byte_signs())}
    specials = [
        {
            "id": 256 + place,
            "content": text,
            "special": True,
            "normalized": False,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
        }
        for place, text in enumerate(texts)
    ]
    return {
        "version": "1.0",
        "added_tokens": specials,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
        "model": {"type": "BPE", "vocab": vocab, "merges": []},
    }


def byte_signs() -> list[str]:
    """GPT-2's character for each byte: itself where printable, else one from U+0100 on."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]
