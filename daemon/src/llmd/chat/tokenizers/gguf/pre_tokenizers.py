"""Pre-tokenizers: how BPE splits text into words before merging; ``tokenizer.ggml.pre`` names a model's.

A pre-tokenizer is a list of patterns that are applied in order: each match becomes a word, and so does the
text between matches. A model's ``tokenizer.json`` contains the patterns; GGUF files only name them.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from llmd.chat.tokenizers.word_patterns import (
    DIGIT,
    DIGITS,
    GPT2,
    GPT4O,
    KIMI,
    LLAMA3,
    NUMBER,
    QWEN2,
    SPACES,
    TEKKEN,
    cl100k,
)

_SIGNED_WORDS = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+"""
_HAN_AND_KANA = "[一-龥\u3040-\u309f\u30a0-\u30ff]+"
_DEEPSEEK3 = (DIGITS, _HAN_AND_KANA, rf"{_SIGNED_WORDS}[\r\n]*|{SPACES}")
_ASIAN = "[一-龥\u0800-一\uac00-\ud7ff]+"
# Cased letters of an older Unicode version, without some scripts.
_CASED = (
    r"[\p{Lu}\p{Ll}\p{Lt}&&[^\x{560}-\x{588}\x{10C7}-\x{10FF}\x{1C80}-\x{1C8A}\x{2D00}-\x{2D2D}\x{A790}-\x{A7FA}"
    r"\x{AB30}-\x{AB68}\x{10570}-\x{105BC}\x{10D50}-\x{10D85}\x{16E40}-\x{16E7F}\x{1D400}-\x{1DF2A}]]"
)
_PUNCTUATION = r"[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]"
_BLOOM = r" ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+"
_LINES = r"\n+"


class PreTokenizer(msgspec.Struct, frozen=True):
    """How a model splits text, and what else its name implies."""

    patterns: tuple[str, ...]
    whole_words: bool = False
    """A word that is a token is used as it is, without merges."""
    composes: bool = False
    """Text is normalized to NFC first."""
    spaced: bool = False
    """Tokens are text with U+2581 for a space, as in SentencePiece, not bytes."""
    adds_bos: bool = False
    """Default for files that do not state it."""


_LLAMA3_CUT = PreTokenizer((LLAMA3,), whole_words=True, adds_bos=True)
_GPT2_CUT = PreTokenizer((GPT2,))
_DIGITS_APART = PreTokenizer((DIGIT, GPT2))
_QWEN2_CUT = PreTokenizer((QWEN2,), composes=True)
_DEFAULT = PreTokenizer((r"[\p{P}$+<=>^~|]+", GPT2, NUMBER, "[0-9][0-9][0-9]"))

OWN = "llmd-guide"
"""The pre-tokenizer of the built-in model; other programs do not know this name."""

CUTS: Mapping[str, PreTokenizer] = {
    "": _DEFAULT,
    "default": _DEFAULT,
    **dict.fromkeys(
        ("llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"),
        _LLAMA3_CUT,
    ),
    **dict.fromkeys(("dbrx", "smaug-bpe", "chatglm-bpe"), PreTokenizer((LLAMA3,))),
    **dict.fromkeys(("glm4", "glm5"), PreTokenizer((LLAMA3,), whole_words=True)),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "kormo", "f2llmv2"), _QWEN2_CUT),
    **dict.fromkeys(
        ("hunyuan", "solar-open", "grok-2", "bailingmoe", "bailingmoe2", "llada-moe"), PreTokenizer((QWEN2,))
    ),
    "qwen35": PreTokenizer((cl100k(DIGIT, letters=r"\p{L}\p{M}"),)),
    "minicpm5": PreTokenizer((DIGITS, cl100k(NUMBER)), whole_words=True),
    "seed-coder": PreTokenizer((QWEN2.replace(r"[\r\n]*", ""),)),
    "superbpe": PreTokenizer((NUMBER, r"(?=(\d{3})+(?!\d))")),
    "laguna": PreTokenizer((_LINES, QWEN2)),
    **dict.fromkeys(
        ("gpt-2", "phi-2", "jina-es", "jina-de", "jina-v1-en", "jina-v2-es", "jina-v2-de", "jina-v2-code", "gigachat",
         "a.x-4.0", "mellum", "modern-bert", "roberta-bpe", "jais", "trillion", "granite-docling", "exaone4"),
        _GPT2_CUT,
    ),
    **dict.fromkeys(("mpt", "olmo"), PreTokenizer((GPT2,), composes=True)),
    **dict.fromkeys(
        ("starcoder", "refact", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"), _DIGITS_APART
    ),
    "command-r": PreTokenizer((DIGIT, GPT2), composes=True),
    "falcon": PreTokenizer((r"[\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]")),
    "deepseek-llm": PreTokenizer((r"[\r\n]", rf"\s?{_CASED}+", rf"\s?{_PUNCTUATION}+", r"\s+$", _ASIAN, NUMBER)),
    "deepseek-coder": PreTokenizer((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _ASIAN, DIGIT)),
    **dict.fromkeys(("deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"), PreTokenizer(_DEEPSEEK3)),
    **dict.fromkeys(("bloom", "poro-chat", "gpt3-finnish"), PreTokenizer((_BLOOM,))),
    "viking": PreTokenizer((_BLOOM, DIGIT)),
    **dict.fromkeys(("gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"), PreTokenizer((GPT4O,))),
    "kimi-k2": PreTokenizer((KIMI,)),
    "granite-embed-multi-97m": PreTokenizer((GPT4O,), whole_words=True),
    "tekken": PreTokenizer((TEKKEN,), whole_words=True, adds_bos=True),
    "gemma4": PreTokenizer((_LINES,), spaced=True, adds_bos=True),
    "granite-embed-multi-311m": PreTokenizer((_LINES,), spaced=True, adds_bos=True),
    "sarvam-moe": PreTokenizer((_LINES,), spaced=True),
    OWN: PreTokenizer((DIGIT, " (?=[A-Z])", GPT2)),
}  # fmt: skip
"""Pre-tokenizers by the names that GGUF files use; the empty name is for files without one."""
