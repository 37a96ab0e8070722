"""The tiny random model of `tests.serving.model` in one GGUF file, with its tokenizer and template."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gguf import GGMLQuantizationType

from tests.golden.gguf_layout import write_gguf
from tests.golden.models.llama import llama
from tests.golden.models.tiny import TinyModel
from tests.serving.model import BOS, CONTEXT_LEN, SPECIALS, TEMPLATE, TURN_END, byte_signs

EXTRA = "\u0100\u0100"
"""Two zero bytes, the only merged token: a vocabulary without merges is invalid."""
KINDS = [1] * 256 + [3] * len(SPECIALS) + [1]


def write_gguf_model(
    path: Path,
    *,
    seed: int = 3,
    kind: GGMLQuantizationType | None = None,
    changes: Mapping[str, Any] | None = None,
    family: Callable[..., dict[str, Any]] = llama,
) -> Path:
    """Write what `write_model` writes with one extra special token; returns the file.
    ``kind`` and ``changes`` as in `write_gguf`, ``family`` as in `write_model`.
    """
    tokens = [*byte_signs(), *SPECIALS, EXTRA]
    config = family(vocab_size=len(tokens), max_position_embeddings=CONTEXT_LEN, eos_token_id=TURN_END)
    keys: dict[str, Any] = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": KINDS,
        "tokenizer.ggml.merges": [f"{EXTRA[0]} {EXTRA[1]}"],
        "tokenizer.ggml.bos_token_id": BOS,
        "tokenizer.ggml.eos_token_id": TURN_END,
        "tokenizer.chat_template": TEMPLATE,
    }
    return write_gguf(TinyModel("served", config, seed=seed), path, kind, changes=keys | dict(changes or {}))
