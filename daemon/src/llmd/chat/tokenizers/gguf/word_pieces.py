"""GGUF vocabularies of WordPiece (``bert``): they mark the first piece of a word, not the others."""

from __future__ import annotations

from pathlib import Path

from llmd.chat.tokenizers.gguf.vocabulary import GgufVocabulary, TokenKind
from llmd.chat.tokenizers.hf_tokenizer import HFTokenizer
from llmd.chat.tokenizers.tokenizer_config import TokenizerConfig
from llmd.chat.tokenizers.word_piece import PREFIX, build_word_piece

_BEGINS_WORD = "▁"
# Default ids, for files that do not state them.
_IDS = {"unk": 100, "cls": 101, "sep": 102}


def load_word_pieces(stated: GgufVocabulary) -> HFTokenizer:
    """Load the tokenizer of a WordPiece vocabulary.

    Raises:
        TokenizerError: a special token is missing.
    """
    special = stated.of_kind(TokenKind.CONTROL, TokenKind.UNKNOWN)
    texts = {
        place: text if place in special else _as_published(text)
        for place, text in enumerate(stated.tokens)
        if text
    }
    ids = {"cls": stated.ids["bos"]} if "bos" in stated.ids else {}
    ids = _IDS | ids | stated.ids
    lower_cases = stated.switches.get("normalizer.lowercase", True)
    config = TokenizerConfig(
        named={f"{role}_token": texts[ids[role]] for role in _IDS if ids[role] in texts},
        lower_cases=lower_cases,
        strips_accents=stated.switches.get("normalizer.strip_accents", lower_cases),
    )
    return build_word_piece({text: place for place, text in texts.items()}, config, Path(stated.file))


def _as_published(text: str) -> str:
    """Return a piece as BERT's own files write it; pieces in brackets have no mark."""
    if text.startswith(_BEGINS_WORD):
        return text.removeprefix(_BEGINS_WORD)
    return text if text.startswith("[") and text.endswith("]") else PREFIX + text
