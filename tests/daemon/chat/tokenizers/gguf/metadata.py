"""Small vocabularies in the metadata of GGUF files."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.vocabulary import byte_signs
from llmd.chat.tokenizers.gguf.vocabulary import PREFIX, TokenKind

NORMAL, UNKNOWN, CONTROL, DEFINED, UNUSED, BYTE = TokenKind
FILE = "tiny.gguf"


def stated(model: str, tokens: dict[str, TokenKind], **values: Any) -> dict[str, Any]:
    """Return the metadata of tokens in id order; lists of numbers are arrays, as the reader returns them."""
    kinds = np.array(list(tokens.values()), dtype="<i4")
    known = {"model": model, "tokens": list(tokens), "token_type": kinds, **values}
    return {PREFIX + key: value for key, value in known.items() if value is not None}


def bytes_and_merges(*merges: str, pre: str | None = "gpt-2", more: dict[str, TokenKind] | None = None, **values: Any) -> dict[str, Any]:  # fmt: skip
    """Return byte-level BPE: the 256 bytes, a token for each merge, <s>, </s>, and ``more``."""
    tokens = [*byte_signs(), *(merge.replace(" ", "") for merge in merges)]
    kinds = dict.fromkeys(tokens, NORMAL) | {"<s>": CONTROL, "</s>": CONTROL} | (more or {})
    ids = {"bos_token_id": list(kinds).index("<s>"), "eos_token_id": list(kinds).index("</s>")}
    return stated("gpt2", kinds, merges=list(merges) or None, pre=pre, **(ids | values))


def scored_pieces(*pieces: str, model: str = "llama", more: dict[str, TokenKind] | None = None, **values: Any) -> dict[str, Any]:  # fmt: skip
    """Return <unk>, <s>, </s>, the 256 bytes, ``pieces`` (the most likely first), and ``more``."""
    kinds = {"<unk>": UNKNOWN, "<s>": CONTROL, "</s>": CONTROL}
    kinds |= {f"<0x{byte:02X}>": BYTE for byte in range(256)}
    kinds |= dict.fromkeys(pieces, NORMAL) | (more or {})
    scores = np.array([min(0.0, 258.0 - place) for place in range(len(kinds))], dtype="<f4")
    return stated(model, kinds, scores=scores, **values)


def words(*pieces: str, **values: Any) -> dict[str, Any]:
    """Return a WordPiece vocabulary as GGUF files write it."""
    kinds = {"[PAD]": CONTROL, "[UNK]": CONTROL, "[CLS]": CONTROL, "[SEP]": CONTROL} | dict.fromkeys(
        pieces, NORMAL
    )
    ids = {"unknown_token_id": 1, "cls_token_id": 2, "seperator_token_id": 3}
    return stated("bert", kinds, **(ids | values))
