from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tiktoken
import tokenizers

from llmd.chat.tokenizers.gguf.gguf_tokenizer import load_gguf_tokenizer
from llmd.chat.tokenizers.gguf.vocabulary_keys import vocabulary_keys
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from tests.daemon.chat.tokenizers.o200k_vocabulary import TEXTS, write_vocabulary

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


HARMONY = "<|start|>assistant<|channel|>final<|message|>Größe: 你好!<|return|>"


@pytest.fixture(scope="module")
def gpt_oss(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tiktoken.Encoding]:
    directory = tmp_path_factory.mktemp("o200k")
    return directory, write_vocabulary(directory)


def test_text_of_many_scripts_is_cut_as_by_tiktoken(gpt_oss: tuple[Path, tiktoken.Encoding]) -> None:
    directory, encoding = gpt_oss
    tokenizer = load_tokenizer(directory)
    alone = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    for text in (*TEXTS, "".join(TEXTS), HARMONY):
        ids = tokenizer.encode(text, add_special=False, parse_special=False)
        assert ids == encoding.encode(text, disallowed_special=()), text
        assert tokenizer.decode(ids) == text
        assert tokenizer.encode(text) == alone.encode(text).ids, text


def test_headers_of_harmony_are_tokens_where_they_are_parsed(
    gpt_oss: tuple[Path, tiktoken.Encoding],
) -> None:
    directory, encoding = gpt_oss
    tokenizer = load_tokenizer(directory)
    parsed = tokenizer.encode(HARMONY)
    assert parsed == encoding.encode(HARMONY, allowed_special="all")
    named = [tokenizer.token_id(text) for text in ("<|start|>", "<|channel|>", "<|message|>", "<|return|>")]
    assert [token_id for token_id in parsed if tokenizer.is_special(token_id)] == named
    assert (tokenizer.eos_ids, tokenizer.vocabulary.prefix_ids) == ((named[-1],), ())


def test_a_gguf_file_names_the_cut_of_gpt_oss(gpt_oss: tuple[Path, tiktoken.Encoding]) -> None:
    directory, encoding = gpt_oss
    source = load_tokenizer(directory)
    keys = vocabulary_keys(source, source.vocab_size)
    assert keys["tokenizer.ggml.pre"] == "gpt-4o"
    found = load_gguf_tokenizer(keys, "m.gguf")
    for text in TEXTS:
        ids = found.encode(text, add_special=False, parse_special=False)
        assert ids == encoding.encode(text, disallowed_special=()), text
