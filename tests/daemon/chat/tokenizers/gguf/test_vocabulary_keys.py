"""Tokenizers of every kind become keys whose tokenizer splits text in the same way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import TokenizerError
from llmd.builtin.guide import guide_directory
from llmd.chat.tokenizers.gguf.gguf_tokenizer import load_gguf_tokenizer
from llmd.chat.tokenizers.gguf.vocabulary import PREFIX, TokenKind
from llmd.chat.tokenizers.gguf.vocabulary_keys import vocabulary_keys
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
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
