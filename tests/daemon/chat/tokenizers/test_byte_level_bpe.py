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


def test_bare_files_of_gpt2_end_with_its_only_special_token(copy: Copy) -> None:
    directory = copy("vocab_merges_gpt2")
    for name in ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"):
        (directory / name).unlink()
    tokenizer = load_tokenizer(directory)
    assert tokenizer.encode("a<|endoftext|>")[-1:] == list(tokenizer.eos_ids)
    assert tokenizer.vocab_size == 361


def test_older_added_tokens_file_is_read(copy: Copy) -> None:
    directory = copy("vocab_merges_qwen2")
    (directory / "tokenizer_config.json").write_text('{"tokenizer_class": "Qwen2Tokenizer"}')
    tokenizer = load_tokenizer(directory)
    think, end = tokenizer.token_id("<think>"), tokenizer.token_id("<|im_end|>")
    assert think is not None
    assert end is not None
    assert tokenizer.is_special(end)
    assert not tokenizer.is_special(think)


def test_qwen2_composes_characters_and_cuts_digits_apart(load: Load) -> None:
    tokenizer = load("vocab_merges_qwen2")
    assert tokenizer.encode("e\u0301") == tokenizer.encode("é")
    assert len(tokenizer.encode("1999")) == 4


@pytest.mark.parametrize("merge", ["a", "a b c", " a", "a ☃", "☃ a", "q q"])
def test_merge_that_cannot_be_made_is_refused_with_its_line(merge: str, copy: Copy) -> None:
    path = copy("vocab_merges_gpt2") / "merges.txt"
    path.write_text("#version: 0.2\n" + merge + "\n")
    with pytest.raises(TokenizerError, match=r"merges\.txt, line 2: "):
        load_tokenizer(path.parent)


def test_missing_merges_are_refused(copy: Copy) -> None:
    path = copy("vocab_merges_gpt2") / "merges.txt"
    path.unlink()
    with pytest.raises(TokenizerError, match=r"merges\.txt: the file is missing"):
        load_tokenizer(path.parent)


def test_merges_that_are_not_text_are_refused(copy: Copy) -> None:
    path = copy("vocab_merges_gpt2") / "merges.txt"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TokenizerError, match="not UTF-8"):
        load_tokenizer(path.parent)


@pytest.mark.parametrize(
    ("vocab", "message"),
    [
        ({}, "has no tokens"),
        ({"a": 0, "b": 0}, "one id to several"),
        ({"a": -1}, "'a' has id -1"),
        ({"a": 2**40}, "'a' has id 1099511627776"),
        ({"a": "0"}, "Expected `int`"),
        ([], "Expected `object`"),
    ],
)
def test_vocabulary_that_contradicts_itself_is_refused(vocab: object, message: str, copy: Copy) -> None:
    path = copy("vocab_merges_gpt2") / "vocab.json"
    path.write_text(json.dumps(vocab))
    with pytest.raises(TokenizerError, match=message) as caught:
        load_tokenizer(path.parent)
    assert str(path) in caught.value.message


def test_added_token_with_the_id_of_another_is_refused(copy: Copy) -> None:
    directory = copy("vocab_merges_gpt2")
    (directory / "tokenizer_config.json").write_text(
        '{"added_tokens_decoder": {"5": {"content": "<|new|>"}}}'
    )
    with pytest.raises(TokenizerError, match="one id to several"):
        load_tokenizer(directory)


def test_added_token_with_another_id_than_in_the_vocabulary_is_refused(copy: Copy) -> None:
    directory = copy("vocab_merges_gpt2")
    (directory / "tokenizer_config.json").write_text('{"added_tokens_decoder": {"400": {"content": "a"}}}')
    with pytest.raises(TokenizerError, match="the configuration says 400"):
        load_tokenizer(directory)


def test_added_token_keeps_the_whitespace_rule_of_the_configuration(copy: Copy) -> None:
    path = copy("vocab_merges_qwen2") / "tokenizer_config.json"
    config = json.loads(path.read_text())
    for token in config["added_tokens_decoder"].values():
        token["rstrip"] = True
    path.write_text(json.dumps(config))
    tokenizer = load_tokenizer(path.parent)
    assert tokenizer.encode("a<|im_end|> \n b") == tokenizer.encode("a<|im_end|>b")
