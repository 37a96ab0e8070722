"""Tokenizers of every kind become keys whose tokenizer splits text in the same way."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import tiktoken
import tokenizers

from llmd.api.errors import TokenizerError
from llmd.builtin.guide import guide_directory
from llmd.chat.tokenizers.gguf.gguf_tokenizer import load_gguf_tokenizer
from llmd.chat.tokenizers.gguf.vocabulary import PREFIX, TokenKind
from llmd.chat.tokenizers.gguf.vocabulary_keys import merges_of, vocabulary_keys
from llmd.chat.tokenizers.token_bytes import ByteLevelPieces
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from tests.daemon.chat.tokenizers.rwkv_vocabulary import write_vocabulary
from tests.serving.model import write_model

FOLDER = Path(__file__).parents[4] / "golden" / "tokenizers"
KINDS = {
    "vocab_merges_gpt2": "gpt2",
    "vocab_merges_qwen2": "gpt2",
    "tiktoken_llama3": "gpt2",
    "tekken_mistral": "gpt2",
    "prepended_json": "llama",
    "sentencepiece_llama": "llama",
    "sentencepiece_legacy": "llama",
    "sentencepiece_gemma": "t5",
}
TEXTS = ("Größe 你好 🦙🏽 \t\r\n\n  ½ 'S 1234567 Hello  World", "a", " a  b", "it's\nx", "<s>", "")
LONGER = (b"ab", b"bc", b"abc", b"aa", b"aaaa", b"abca", b"ca", b"bb")
RANKS = {token: rank for rank, token in enumerate([*(bytes([byte]) for byte in range(256)), *LONGER])}


def written(tokenizer: Tokenizer, size: int | None = None) -> tuple[dict[str, Any], Tokenizer]:
    keys = vocabulary_keys(tokenizer, size or tokenizer.vocab_size)
    return keys, load_gguf_tokenizer(keys, "m.gguf")


@pytest.mark.parametrize("name", KINDS)
def test_a_tokenizer_comes_back_that_cuts_alike(name: str) -> None:
    source = load_tokenizer(FOLDER / name)
    keys, found = written(source)
    assert keys[f"{PREFIX}model"] == KINDS[name]
    for text in TEXTS:
        assert found.encode(text, parse_special=False) == source.encode(text, parse_special=False), text
    for field in ("size", "bos_id", "prefix_ids", "suffix_ids", "strips_leading_space"):
        assert getattr(found.vocabulary, field) == getattr(source.vocabulary, field), field
    assert {t.token_id: t.text for t in found.vocabulary.specials}.items() >= {
        t.token_id: t.text for t in source.vocabulary.specials
    }.items()


def test_the_ranks_of_kimi_become_merges(tmp_path: Path) -> None:
    (tmp_path / "tiktoken.model").write_bytes((FOLDER / "tiktoken_llama3/tokenizer.model").read_bytes())
    source = load_tokenizer(tmp_path)
    keys, found = written(source)
    assert keys[f"{PREFIX}pre"] == "kimi-k2"
    for text in TEXTS:
        assert found.encode(text, parse_special=False) == source.encode(text, parse_special=False), text


@pytest.mark.parametrize("config", ["{}", '{"added_tokens_decoder": {"261": {"content": "\\n\\n"}}}'])
def test_the_vocabulary_of_rwkv_has_the_same_bytes(config: str, tmp_path: Path) -> None:
    (write_vocabulary(tmp_path) / "tokenizer_config.json").write_text(config)
    source = load_tokenizer(tmp_path)
    keys, found = written(source)
    assert keys[f"{PREFIX}model"] == "rwkv"
    assert f"{PREFIX}scores" not in keys
    for text in (*TEXTS, "there is\n\nthe User's \\ \"q\" \u2028 'x'"):
        assert found.encode(text, parse_special=False) == source.encode(text, parse_special=False), text
    assert (found.bos_id, found.eos_ids) == (source.bos_id, source.eos_ids)


def test_the_built_in_model_has_a_cut_of_its_own() -> None:
    source = load_tokenizer(guide_directory())
    keys, found = written(source)
    assert keys[f"{PREFIX}pre"] == "llmd-guide"
    text = "In 2024 I ran `llmd serve guide --slots 16`.  Größe, ½ ₂ ٣٤"
    assert found.encode(text) == source.encode(text)


def test_ids_without_a_token_get_names_that_no_text_has() -> None:
    source = load_tokenizer(FOLDER / "vocab_merges_gpt2")
    keys, found = written(source, source.vocab_size + 2)
    assert keys[f"{PREFIX}tokens"][-2:] == [f"[PAD{source.vocab_size}]", f"[PAD{source.vocab_size + 1}]"]
    assert keys[f"{PREFIX}token_type"][-1] == TokenKind.UNUSED
    text = f"[PAD{source.vocab_size}]"
    assert found.encode(text) == source.encode(text)


def test_special_tokens_and_added_ones_are_told_apart(tmp_path: Path) -> None:
    for name in ("vocab.json", "merges.txt"):
        (tmp_path / name).write_bytes((FOLDER / "vocab_merges_gpt2" / name).read_bytes())
    plain = load_tokenizer(tmp_path)
    size = plain.vocab_size
    (tmp_path / "tokenizer_config.json").write_text(
        f'{{"added_tokens_decoder": {{"{size}": {{"content": "<ctl>", "special": true}}, '
        f'"{size + 1}": {{"content": "<tool>", "special": false}}}}}}'
    )
    kinds = vocabulary_keys(load_tokenizer(tmp_path), size + 2)[f"{PREFIX}token_type"]
    assert kinds[-2:].tolist() == [TokenKind.CONTROL, TokenKind.USER_DEFINED]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("byte_level_json", "no name"),
        ("encoder_bert", "WordPiece"),
        ("encoder_xlm_roberta", "Unigram"),
    ],
)
def test_what_a_file_cannot_hold_is_refused(name: str, complaint: str) -> None:
    source = load_tokenizer(FOLDER / name)
    with pytest.raises(TokenizerError, match=complaint) as refused:
        vocabulary_keys(source, source.vocab_size)
    assert "directory" in refused.value.hint


def test_a_tokenizer_that_merges_nothing_is_refused(tmp_path: Path) -> None:
    source = load_tokenizer(write_model(tmp_path))
    with pytest.raises(TokenizerError, match="has no merges"):
        vocabulary_keys(source, source.vocab_size)


def test_pairs_stand_in_the_order_of_what_they_make() -> None:
    assert list(merges_of(RANKS)) == [
        (b"a", b"b"), (b"b", b"c"), (b"a", b"bc"), (b"ab", b"c"), (b"a", b"a"), (b"aa", b"aa"),
        (b"ab", b"ca"), (b"abc", b"a"), (b"c", b"a"), (b"b", b"b"),
    ]  # fmt: skip


def test_random_texts_are_cut_as_by_tiktoken() -> None:
    signs = ByteLevelPieces().written
    vocab = {signs(token): rank for token, rank in RANKS.items()}
    merges = [(signs(left), signs(right)) for left, right in merges_of(RANKS)]
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocab, merges=merges, ignore_merges=True))
    theirs = tiktoken.Encoding("m", pat_str=r"[\s\S]+", mergeable_ranks=RANKS, special_tokens={})
    draw = random.Random(5)
    for _ in range(500):
        text = "".join(draw.choices("abc", k=draw.randint(1, 12)))
        assert bpe.encode(text).ids == theirs.encode(text), text
