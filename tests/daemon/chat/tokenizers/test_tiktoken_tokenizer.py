from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import tokenizers

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.tiktoken_tokenizer import MAX_RUN_LEN
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from llmd.chat.tokenizers.word_patterns import KIMI

Copy = Callable[[str], Path]
Load = Callable[[str], Tokenizer]


def test_special_tokens_of_llama3_follow_the_ranks(load: Load) -> None:
    tokenizer = load("tiktoken_llama3")
    assert len(tokenizer.vocabulary.specials) == 256
    places = {"<|begin_of_text|>": 0, "<|start_header_id|>": 6, "<|end_header_id|>": 7, "<|eot_id|>": 9}
    assert {text: tokenizer.token_id(text) for text in places} == {
        text: 360 + n for text, n in places.items()
    }
    assert tokenizer.token_id("<|reserved_special_token_247|>") == 360 + 255


def test_configuration_lists_other_special_tokens(copy: Copy) -> None:
    directory = copy("tiktoken_llama3")
    config = '{"added_tokens_decoder": {"360": {"content": "<|a|>"}, "400": {"content": "<|b|>"}}, "eos_token": "<|b|>"}'
    (directory / "tokenizer_config.json").write_text(config)
    tokenizer = load_tokenizer(directory)
    assert (tokenizer.vocab_size, tokenizer.bos_id, tokenizer.eos_ids) == (401, None, (400,))
    assert tokenizer.encode("x<|b|>")[-1] == 400


@pytest.mark.parametrize("char", [" ", "a", "^", "\n"])
def test_runs_of_a_million_characters_are_encoded(char: str, load: Load) -> None:
    tokenizer = load("tiktoken_llama3")
    text = f"b{char * 1_000_000}b"
    assert tokenizer.decode(tokenizer.encode(text, add_special=False)) == text


def test_long_text_of_short_runs_is_not_cut(load: Load) -> None:
    tokenizer = load("tiktoken_llama3")
    line = "the model reads a model, and answers\n"
    num_lines = 2 * MAX_RUN_LEN // len(line)
    assert (
        tokenizer.encode(line * num_lines, add_special=False)
        == tokenizer.encode(line, add_special=False) * num_lines
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"YQ==", "not base64 and a rank"),
        (b"YQ== x", "not base64 and a rank"),
        (b"!!!! 400", "not base64 and a rank"),
        (b"YQ 400", "not base64 and a rank"),
        (b"YQ== 400", "occurs twice"),
    ],
)
def test_damaged_line_is_refused_with_its_number(line: bytes, message: str, copy: Copy) -> None:
    path = copy("tiktoken_llama3") / "tokenizer.model"
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(TokenizerError, match=f"line 361: .*{message}"):
        load_tokenizer(path.parent)


def test_file_cut_between_lines_is_refused(copy: Copy) -> None:
    path = copy("tiktoken_llama3") / "tokenizer.model"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:200]))
    with pytest.raises(TokenizerError, match="no token for byte 0xc8"):
        load_tokenizer(path.parent)


@pytest.mark.parametrize("rank", [b"5", b"-1", b"99999999999"])
def test_rank_that_cannot_be_an_id_is_refused(rank: bytes, copy: Copy) -> None:
    path = copy("tiktoken_llama3") / "tokenizer.model"
    path.write_bytes(path.read_bytes() + b"eHl6enk= " + rank + b"\n")
    with pytest.raises(TokenizerError, match="tokens share"):
        load_tokenizer(path.parent)


def test_end_token_that_is_not_listed_is_refused(copy: Copy) -> None:
    directory = copy("tiktoken_llama3")
    (directory / "tokenizer_config.json").write_text('{"eos_token": "<|gone|>"}')
    with pytest.raises(TokenizerError, match="not among the added tokens"):
        load_tokenizer(directory)


def test_kimi_cuts_chinese_words_apart_and_adds_no_bos(copy: Copy) -> None:
    directory = copy("tiktoken_llama3")
    (directory / "tokenizer.model").rename(directory / "tiktoken.model")
    config = '{"added_tokens_decoder": {"400": {"content": "[BOS]"}, "401": {"content": "[EOS]"}}, "bos_token": "[BOS]", "eos_token": "[EOS]"}'
    (directory / "tokenizer_config.json").write_text(config)
    tokenizer = load_tokenizer(directory)
    assert (tokenizer.bos_id, tokenizer.eos_ids, tokenizer.vocabulary.prefix_ids) == (400, (401,), ())
    text = "It's 你好 HelloWorld 12345 été的\n\n  x"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    cut = tokenizers.pre_tokenizers.Split(tokenizers.Regex(KIMI), behavior="isolated")
    words = [word for word, _ in cut.pre_tokenize_str(text)]
    assert words == [
        "It's",
        " ",
        "你好",
        " Hello",
        "World",
        " ",
        "123",
        "45",
        " été",
        "的",
        "\n\n",
        " ",
        " x",
    ]
