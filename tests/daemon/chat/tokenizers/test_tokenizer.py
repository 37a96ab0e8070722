from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from llmd.api.errors import RequestError, TokenizerError
from llmd.chat.tokenizers.tokenizer import Tokenizer, check_vocab_size
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer


def special_text(tokenizer: Tokenizer) -> str:
    return tokenizer.vocabulary.specials[-1].text


def test_special_text_is_one_token_where_it_is_parsed(tokenizer: Tokenizer) -> None:
    text = special_text(tokenizer)
    assert tokenizer.encode(text, add_special=False) == [tokenizer.token_id(text)]


def test_special_text_stays_plain_text_where_it_is_not_parsed(tokenizer: Tokenizer) -> None:
    text = f"a{special_text(tokenizer)} b"
    ids = tokenizer.encode(text, add_special=False, parse_special=False)
    assert not any(map(tokenizer.is_special, ids))
    assert tokenizer.decode(ids) == text


def test_begins_with_bos_once(tokenizer: Tokenizer) -> None:
    prefix = list(tokenizer.vocabulary.prefix_ids)
    written = "".join(map(tokenizer.token_text, prefix))
    plain = tokenizer.encode("hello", add_special=False)
    assert tokenizer.encode("hello") == prefix + plain
    assert [i for i in tokenizer.encode(written + "hello") if tokenizer.is_special(i)] == prefix
    assert tokenizer.encode("") == prefix


def test_text_of_special_tokens_can_be_left_out(tokenizer: Tokenizer) -> None:
    special = tokenizer.vocabulary.specials[-1]
    ids = [*tokenizer.encode("hello", add_special=False), special.token_id]
    assert tokenizer.decode(ids, skip_special=True) == "hello"
    assert tokenizer.decode(ids) == "hello" + special.text


def test_part_of_a_character_is_a_replacement_character_as_text(tokenizer: Tokenizer) -> None:
    first_byte = next(i for i in range(tokenizer.vocab_size) if tokenizer.token_bytes(i) == b"\xf0")
    assert tokenizer.token_text(first_byte) == "�"


def test_surrogates_are_the_senders_mistake(tokenizer: Tokenizer) -> None:
    with pytest.raises(RequestError, match="not valid Unicode"):
        tokenizer.encode("a\ud800")


def test_tokenizer_larger_than_the_model_is_refused(tokenizer: Tokenizer) -> None:
    check_vocab_size(tokenizer, tokenizer.vocab_size)
    with pytest.raises(
        TokenizerError, match=f"{tokenizer.vocab_size} tokens, but the model has 9 embeddings"
    ):
        check_vocab_size(tokenizer, 9)


def test_a_whole_text_ends_with_eos_where_its_makers_say_so(copy: Callable[[str], Path], kind: str) -> None:
    directory = copy(kind)
    path = directory / "tokenizer_config.json"
    config = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(config | {"add_eos_token": True}))
    tokenizer = load_tokenizer(directory)
    assert tokenizer.encode_whole("hello") == [*tokenizer.encode("hello"), *tokenizer.eos_ids]
    assert tokenizer.encode("hello")[-1:] != list(tokenizer.eos_ids)
