from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer

Copy = Callable[[str], Path]
Load = Callable[[str], Tokenizer]


def bare(directory: Path) -> Path:
    """Remove the configuration files, so that only the list of pieces remains."""
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        (directory / name).unlink()
    return directory


def test_a_list_of_pieces_is_enough_and_lower_cases_unless_told_otherwise(copy: Copy) -> None:
    directory = copy("encoder_vocab")
    cased = load_tokenizer(directory).encode("The Daemon", add_special=False)
    uncased = load_tokenizer(bare(directory))
    assert uncased.encode("The Daemon", add_special=False) == uncased.encode("the daemon", add_special=False)
    assert cased != uncased.encode("The Daemon", add_special=False)
    assert uncased.decode(uncased.encode_whole("the daemon")) == "[CLS] the daemon[SEP]"


@pytest.mark.parametrize(
    ("options", "text", "same"),
    [
        ({"do_lower_case": False, "strip_accents": True}, "café", "cafe"),
        ({"do_lower_case": True, "strip_accents": False}, "Café", "café"),
        ({"do_lower_case": True}, "Café", "cafe"),
    ],
)
def test_case_and_accents_are_as_configured(
    options: dict[str, bool], text: str, same: str, copy: Copy
) -> None:
    directory = copy("encoder_vocab")
    (directory / "tokenizer_config.json").write_text(json.dumps(options))
    tokenizer = load_tokenizer(directory)
    assert tokenizer.encode(text) == tokenizer.encode(same)


def test_chinese_characters_are_words_unless_told_otherwise(copy: Copy) -> None:
    directory = copy("encoder_vocab")
    apart = load_tokenizer(directory).encode("你好", add_special=False)
    (directory / "tokenizer_config.json").write_text(json.dumps({"tokenize_chinese_chars": False}))
    assert load_tokenizer(directory).encode("你好", add_special=False) != apart


def test_special_tokens_may_have_other_names(copy: Copy) -> None:
    directory = bare(copy("encoder_vocab"))
    pieces = (directory / "vocab.txt").read_text().replace("[CLS]", "<first>")
    (directory / "vocab.txt").write_text(pieces)
    (directory / "tokenizer_config.json").write_text(json.dumps({"cls_token": "<first>"}))
    assert load_tokenizer(directory).encode_whole("") == [2, 3]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "there is no unk_token"),
        (b"[UNK]\n[CLS]\n", "there is no sep_token"),
        (b"\xff\n", "is not UTF-8"),
    ],
)
def test_a_damaged_list_is_refused_by_name(content: bytes, message: str, copy: Copy) -> None:
    directory = bare(copy("encoder_vocab"))
    (directory / "vocab.txt").write_bytes(content)
    with pytest.raises(TokenizerError, match=message) as caught:
        load_tokenizer(directory)
    assert str(directory / "vocab.txt") in caught.value.message
    assert caught.value.hint
