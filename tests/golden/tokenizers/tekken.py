"""Mistral's own tokenizer: a small ``tekken.json``, and what mistral-common encodes with it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
NUM_SPECIALS = 24
UNUSED = 10
"""Tokens at the end of the file beyond the size of the vocabulary."""


class Tekken:
    """mistral-common's tokenizer, called as those of transformers are.

    It never reads special tokens in a text: those are cut out first.
    """

    def __init__(self, path: Path) -> None:
        self._tokenizer = Tekkenizer.from_file(path)
        self._texts = [self._tokenizer.id_to_piece(number) for number in range(NUM_SPECIALS)]

    def __call__(self, text: str, *, add_special_tokens: bool) -> dict[str, list[int]]:
        assert not add_special_tokens
        ids: list[int] = []
        for piece in re.split(f"({'|'.join(map(re.escape, self._texts))})", text):
            if piece in self._texts:
                ids.append(self._texts.index(piece))
            elif piece:
                ids += self._tokenizer.encode(piece, bos=False, eos=False)
        return {"input_ids": ids}

    def decode(self, ids: list[int], **_: Any) -> str:
        return str(self._tokenizer.decode(ids, special_token_policy=SpecialTokenPolicy.KEEP))


def write_tekken(path: Path, tokens: Sequence[bytes]) -> None:
    """A file of version 3, which names no special tokens, with ``tokens`` in the order of their ranks."""
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for rank, token in enumerate(tokens)
    ]
    config = {
        "pattern": PATTERN,
        "num_vocab_tokens": len(tokens),
        "default_vocab_size": len(tokens) - UNUSED + NUM_SPECIALS,
        "default_num_special_tokens": NUM_SPECIALS,
        "version": "v3",
    }
    path.write_text(json.dumps({"config": config, "vocab": vocab}))
