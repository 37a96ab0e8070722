"""A small vocabulary in the form of gpt-oss's tokenizer.json, o200k_harmony."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import tiktoken
import tokenizers

from tests.serving.model import byte_signs

WORDS = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
)
"""What is a word. Source: ``o200k_base`` of github.com/openai/tiktoken, which o200k_harmony extends."""
PATTERN = "|".join(WORDS)
SPECIALS = (
    *("<|startoftext|>", "<|endoftext|>", "<|reserved_200000|>", "<|reserved_200001|>", "<|return|>"),
    *("<|constrain|>", "<|reserved_200004|>", "<|channel|>", "<|start|>", "<|end|>", "<|message|>"),
    *("<|reserved_200009|>", "<|reserved_200010|>", "<|reserved_200011|>", "<|call|>"),
    *(f"<|reserved_{place}|>" for place in range(200013, 200018)),
    "<|endofprompt|>",
)
"""In the order of their ids."""
TEXTS = (
    "I'LL pay $1,234.56 for HelloWorld's APIs, won't I? They've said so; I'd do it.\n\n",
    "  def f(x):\r\n\treturn {'a': x ** 2}  # two\n\n    y = f(12345)//3\n",
    "Größe, naïve café, ŒUVRE, Çağrı, Ångström, ĳsberg, ǅungla, ﬁn",
    "Привет, мир! Ελληνικά: γειά σου Κόσμε. Հայերեն, ქართული ენა",
    "你好,世界。こんにちは、カタカナ。안녕하세요 세계 Tiếng Việt đẹp",
    "שָׁלוֹם עולם، مرحبًا بالعالم ۱۲۳۴۵, नमस्ते दुनिया १२३, สวัสดีชาวโลก, ᠮᠣᠩᠭᠣᠯ, ꦗꦮ",
    "🦙🏽 👩‍👩‍👧‍👦 🇩🇪 ½ Ⅷ ² e\u0301 \u200b\u2028\u00a0 \ufeff \U00010330\U0001d54f x\u0302\u0323",
    " \t \n \r\n  \n\n\n a   b\x00\x7f",
)


def ranks() -> dict[bytes, int]:
    """All bytes, and tokens trained on the texts."""
    trained = tokenizers.Tokenizer(tokenizers.models.BPE())
    trained.pre_tokenizer = pre_tokenizer()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=alphabet, min_frequency=1, show_progress=False
    )
    trained.train_from_iterator(TEXTS, trainer)
    by_sign = {sign: byte for byte, sign in enumerate(byte_signs())}
    tokens = sorted(trained.get_vocab(), key=lambda token: (len(token) > 1, trained.token_to_id(token)))
    return {bytes(by_sign[sign] for sign in token): rank for rank, token in enumerate(tokens)}


def pre_tokenizer() -> tokenizers.pre_tokenizers.Sequence:
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(PATTERN), behavior="isolated")
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return tokenizers.pre_tokenizers.Sequence([split, byte_level])


def write_vocabulary(directory: Path) -> tiktoken.Encoding:
    """Write the files, and return the vocabulary as tiktoken runs it."""
    tokens = ranks()
    signs = byte_signs()
    written = {token: "".join(signs[byte] for byte in token) for token in tokens}
    pairs = [
        (written[token[:cut]], written[token[cut:]])
        for token in tokens
        for cut in sorted(range(1, len(token)), key=lambda cut: (tokens.get(token[:cut], 0), cut))
        if token[:cut] in tokens and token[cut:] in tokens
    ]
    vocab = {written[token]: rank for token, rank in tokens.items()}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocab, merges=pairs))
    made.pre_tokenizer = pre_tokenizer()
    made.decoder = tokenizers.decoders.ByteLevel()
    made.post_processor = tokenizers.processors.ByteLevel(trim_offsets=False)
    made.add_special_tokens([tokenizers.AddedToken(text, normalized=False) for text in SPECIALS])
    made.save(str(directory / "tokenizer.json"))
    added = dict(zip(SPECIALS, itertools.count(len(tokens)), strict=False))
    config: dict[str, Any] = {
        "added_tokens_decoder": {
            str(place): {"content": text, "special": True} for text, place in added.items()
        },
        "bos_token": "<|startoftext|>",
        "eos_token": "<|return|>",
        "pad_token": "<|endoftext|>",
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
    return tiktoken.Encoding("o200k", pat_str=PATTERN, mergeable_ranks=tokens, special_tokens=added)
