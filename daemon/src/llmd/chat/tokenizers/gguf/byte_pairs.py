"""GGUF vocabularies of BPE: ``gpt2``, tokens of bytes in GPT-2's alphabet, and ``gemma4``, tokens of text."""

from __future__ import annotations

import difflib

import tokenizers
from tokenizers import models, normalizers, pre_tokenizers

from llmd.chat.tokenizers.gguf.pre_tokenizers import CUTS, PreTokenizer
from llmd.chat.tokenizers.gguf.roles import vocabulary_of
from llmd.chat.tokenizers.gguf.vocabulary import GgufVocabulary, TokenKind
from llmd.chat.tokenizers.hf_tokenizer import HFTokenizer
from llmd.chat.tokenizers.token_bytes import ByteLevelPieces, SpacedPieces


def load_byte_pairs(stated: GgufVocabulary) -> HFTokenizer:
    """Load the tokenizer of a vocabulary with merges.

    Raises:
        TokenizerError: its pre-tokenizer is unknown, or a merge needs missing tokens.
    """
    cut = find_pre_tokenizer(stated)
    tokenizer = tokenizers.Tokenizer(_model(stated, cut))
    if cut.spaced:
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
    elif cut.composes:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(_steps(cut))
    vocabulary = vocabulary_of(stated, adds_bos=cut.adds_bos)
    tokenizer.add_special_tokens([_added(token.text) for token in vocabulary.specials])
    tokenizer.add_tokens([_added(text) for text in stated.of_kind(TokenKind.USER_DEFINED).values()])
    pieces = SpacedPieces(byte_fallback=True) if cut.spaced else ByteLevelPieces()
    return HFTokenizer(vocabulary, tokenizer, pieces)


def find_pre_tokenizer(stated: GgufVocabulary) -> PreTokenizer:
    """Return the pre-tokenizer that a vocabulary names; the vocabulary kind ``gemma4`` implies its own.

    Raises:
        TokenizerError: it is unknown.
    """
    name = "gemma4" if stated.model == "gemma4" else stated.pre
    if name not in CUTS:
        near = ", ".join(difflib.get_close_matches(name, CUTS, n=3, cutoff=0.0))
        raise stated.error(
            f"tokenizer.ggml.pre is {name!r}, an unknown pre-tokenizer; the closest known ones are {near}",
            "upgrade llmd; a newer version may support it",
        )
    return CUTS[name]


def _steps(cut: PreTokenizer) -> list[pre_tokenizers.PreTokenizer]:
    steps: list[pre_tokenizers.PreTokenizer] = [
        pre_tokenizers.Split(tokenizers.Regex(pattern), behavior="isolated") for pattern in cut.patterns
    ]
    return (
        steps if cut.spaced else [*steps, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )


def _model(stated: GgufVocabulary, cut: PreTokenizer) -> models.BPE:
    if not stated.merges:
        raise stated.error("there is no list tokenizer.ggml.merges", "use a newer conversion of the model")
    vocab = {text: place for place, text in enumerate(stated.tokens) if text}
    # The library panics if the token that a merge makes is missing.
    lost = next((merge for merge in stated.merges if merge.replace(" ", "", 1) not in vocab), None)
    if lost is not None:
        raise stated.error(f"there is no token for the merge {lost!r}")
    merges = [(left, right) for left, _, right in (merge.partition(" ") for merge in stated.merges)]
    try:
        return models.BPE(vocab=vocab, merges=merges, ignore_merges=cut.whole_words, byte_fallback=cut.spaced)
    except Exception as exc:
        raise stated.error(f"its merges do not fit its tokens: {exc}") from exc


def _added(text: str) -> tokenizers.AddedToken:
    return tokenizers.AddedToken(text, normalized=False)
