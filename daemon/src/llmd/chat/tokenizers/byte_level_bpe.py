"""Byte-level BPE from ``vocab.json`` and ``merges.txt``, as published for GPT-2 and Qwen2."""

from __future__ import annotations

from pathlib import Path

import msgspec
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers

from llmd.api.errors import TokenizerError
from llmd.chat.json_file import read_file, read_json
from llmd.chat.tokenizers.hf_tokenizer import HFTokenizer, add_configured_tokens, describe
from llmd.chat.tokenizers.token_bytes import ByteLevelPieces
from llmd.chat.tokenizers.tokenizer_config import TokenizerConfig
from llmd.chat.tokenizers.word_patterns import QWEN2

_GPT2_END = "<|endoftext|>"


def load_vocab_and_merges(vocab_path: Path, merges_path: Path, config: TokenizerConfig) -> HFTokenizer:
    """Load the tokenizer of the two files, with the added tokens of ``config``.

    Raises:
        TokenizerError: a file is missing or damaged, a merge needs a missing token, or an id occurs twice.
    """
    vocab = _read_vocab(vocab_path)
    merges = _read_merges(merges_path, vocab)
    for token_id, token in config.added.items():
        if vocab.setdefault(token.content, token_id) != token_id:
            raise TokenizerError(
                f"{vocab_path}: token {token.content!r} has id {vocab[token.content]}, but the configuration says {token_id}",
                hint="the tokenizer files contradict each other; copy all of them from the same model",
            )
    _check_unique(vocab, vocab_path)
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=merges))
    # Files of this format split text as GPT-2 does, except Qwen's.
    if config.tokenizer_class == "Qwen2Tokenizer":
        _cut_like_qwen2(tokenizer)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=bool(config.add_prefix_space))
    tokenizer.decoder = decoders.ByteLevel()
    complete = _with_default_end(config, vocab)
    add_configured_tokens(tokenizer, complete, vocab_path)
    vocabulary = describe(tokenizer, complete, vocab_path, strips_leading_space=False)
    return HFTokenizer(vocabulary, tokenizer, ByteLevelPieces())


def _read_vocab(path: Path) -> dict[str, int]:
    vocab = read_json(path, dict[str, int], error=TokenizerError)
    if not vocab:
        raise TokenizerError(f"{path} has no tokens", hint="copy the file again from its model")
    outside = [token for token, token_id in vocab.items() if not 0 <= token_id < 1 << 31]
    if outside:
        raise TokenizerError(
            f"{path}: token {outside[0]!r} has id {vocab[outside[0]]}", hint="copy the file again"
        )
    _check_unique(vocab, path)
    return vocab


def _check_unique(vocab: dict[str, int], path: Path) -> None:
    if len(set(vocab.values())) != len(vocab):
        raise TokenizerError(
            f"{path} gives one id to several tokens", hint="copy the file again from its model"
        )


def _read_merges(path: Path, vocab: dict[str, int]) -> list[tuple[str, str]]:
    try:
        lines = read_file(path, error=TokenizerError).decode().split("\n")
    except UnicodeDecodeError as exc:
        raise TokenizerError(f"{path} is not UTF-8: {exc.reason}", hint="copy the file again") from exc
    numbered = [(number, line.rstrip("\r")) for number, line in enumerate(lines, start=1)]
    return [
        _merge(path, number, line, vocab)
        for number, line in numbered
        if line and not _is_header(number, line)
    ]


def _is_header(number: int, line: str) -> bool:
    return number == 1 and line.startswith("#version")


def _merge(path: Path, number: int, line: str, vocab: dict[str, int]) -> tuple[str, str]:
    left, separator, right = line.partition(" ")
    if not (separator and left and right) or " " in right:
        raise TokenizerError(
            f"{path}, line {number}: {line!r} is not a pair of tokens", hint="copy the file again"
        )
    for token in (left, right, left + right):
        if token not in vocab:
            raise TokenizerError(
                f"{path}, line {number}: the merge needs token {token!r}, which is not in the vocabulary",
                hint="vocab.json and merges.txt belong to different models; copy both from the same model",
            )
    return left, right


def _cut_like_qwen2(tokenizer: tokenizers.Tokenizer) -> None:
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(QWEN2), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def _with_default_end(config: TokenizerConfig, vocab: dict[str, int]) -> TokenizerConfig:
    """Name EOS if the files do not: GPT-2's files do not name their only special token."""
    if config.name("eos_token") is None and _GPT2_END in vocab:
        return msgspec.structs.replace(config, named=config.named | {"eos_token": _GPT2_END})
    return config
