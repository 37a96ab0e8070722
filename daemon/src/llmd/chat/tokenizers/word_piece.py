"""WordPiece from ``vocab.txt``, BERT's original format, for models without a ``tokenizer.json``.

Source: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers".
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from llmd.api.errors import TokenizerError
from llmd.chat.json_file import read_file
from llmd.chat.tokenizers.hf_tokenizer import HFTokenizer, add_configured_tokens, describe
from llmd.chat.tokenizers.token_bytes import WordPieces
from llmd.chat.tokenizers.tokenizer_config import TokenizerConfig

PREFIX = "##"
NAMES: dict[str, str | list[str]] = {
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "mask_token": "[MASK]",
}
"""Special tokens that the configuration does not name."""


def load_word_piece(path: Path, config: TokenizerConfig) -> HFTokenizer:
    """Load the tokenizer of a list of pieces, one per line.

    Raises:
        TokenizerError: the file is damaged or lacks a special token.
    """
    return build_word_piece(_read_vocab(path), config, path)


def build_word_piece(vocab: dict[str, int], config: TokenizerConfig, path: Path) -> HFTokenizer:
    """Build the tokenizer of ``vocab``: the ids of the pieces in ``path``.

    Raises:
        TokenizerError: a special token is missing.
    """
    complete = msgspec.structs.replace(config, named=NAMES | config.named)
    unknown, first, separator = (
        _special(complete, role, vocab, path) for role in ("unk_token", "cls_token", "sep_token")
    )
    tokenizer = tokenizers.Tokenizer(models.WordPiece(vocab=vocab, unk_token=unknown))
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=config.lower_cases,
        strip_accents=config.strips_accents,
        handle_chinese_chars=config.splits_chinese,
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=PREFIX)
    tokenizer.post_processor = processors.BertProcessing((separator, vocab[separator]), (first, vocab[first]))
    add_configured_tokens(tokenizer, complete, path)
    vocabulary = describe(tokenizer, complete, path, strips_leading_space=True)
    return HFTokenizer(vocabulary, tokenizer, WordPieces(PREFIX))


def _read_vocab(path: Path) -> dict[str, int]:
    try:
        lines = read_file(path, error=TokenizerError).decode().removesuffix("\n").split("\n")
    except UnicodeDecodeError as exc:
        raise TokenizerError(f"{path} is not UTF-8: {exc.reason}", hint="copy the file again") from exc
    return {line.removesuffix("\r"): place for place, line in enumerate(lines)}


def _special(config: TokenizerConfig, role: str, vocab: dict[str, int], path: Path) -> str:
    text = config.name(role)
    if text is None or text not in vocab:
        raise TokenizerError(
            f"{path}: there is no {role} {text!r}",
            hint="the file is damaged or does not match tokenizer_config.json; copy both from the same model",
        )
    return text
