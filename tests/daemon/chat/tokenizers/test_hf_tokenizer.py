from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from llmd.chat.tokenizers.tokenizer import Tokenizer

Load = Callable[[str], Tokenizer]


def test_space_is_prepended_only_where_a_text_begins(load: Load) -> None:
    tokenizer = load("metaspace_json")
    begins = tokenizer.encode_part("hello", parse_special=False, at_start=True)
    continues = tokenizer.encode_part("hello", parse_special=False, at_start=False)
    assert b"".join(map(tokenizer.token_bytes, begins)) == b" hello"
    assert b"".join(map(tokenizer.token_bytes, continues)) == b"hello"


@pytest.mark.parametrize("kind", ["byte_level_json", "metaspace_json", "vocab_merges_qwen2"])
def test_no_text_becomes_an_id_outside_the_vocabulary(kind: str, load: Load) -> None:
    tokenizer = load(kind)
    for at_start in (True, False):
        ids = tokenizer.encode_part("a\U0010fffdb\U0010fffd", parse_special=False, at_start=at_start)
        assert max(ids) < tokenizer.vocab_size


def test_added_tokens_that_are_not_special_are_tokens_in_user_text_too(load: Load) -> None:
    tokenizer = load("byte_level_json")
    think = tokenizer.token_id("<think>")
    assert think is not None
    assert not tokenizer.is_special(think)
    assert tokenizer.encode("<think>", add_special=False, parse_special=False) == [think]


def test_threads_share_a_tokenizer(load: Load) -> None:
    tokenizer = load("byte_level_json")
    texts = [f"text {number} <|im_end|>" for number in range(50)] * 4
    with ThreadPoolExecutor(4) as pool:
        plain = pool.map(lambda text: tokenizer.encode(text, parse_special=False), texts)
        parsed = pool.map(tokenizer.encode, texts)
        assert list(plain) == [tokenizer.encode(text, parse_special=False) for text in texts]
        assert list(parsed) == [tokenizer.encode(text) for text in texts]
