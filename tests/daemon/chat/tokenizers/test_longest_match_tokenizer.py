from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.longest_match_tokenizer import LongestMatchTokenizer
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from tests.daemon.chat.tokenizers.rwkv_vocabulary import lines, tokens, write_vocabulary

END = "<|rwkv_tokenizer_end_of_text|>"


def pieces(tokenizer: Tokenizer, text: str) -> list[bytes]:
    return [tokenizer.token_bytes(token_id) for token_id in tokenizer.encode(text, parse_special=False)]


def configured(directory: Path, **values: object) -> Tokenizer:
    write_vocabulary(directory)
    (directory / "tokenizer_config.json").write_text(json.dumps(values))
    return load_tokenizer(directory)


def test_the_longest_token_is_taken_at_each_place(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(write_vocabulary(tmp_path))
    assert isinstance(tokenizer, LongestMatchTokenizer)
    assert pieces(tokenizer, "there then the") == [b"there", b" the", b"n", b" the"]
    assert pieces(tokenizer, "thxé's") == [b"th", b"x", "é".encode(), b"'s"]
    assert pieces(tokenizer, "你\n\n\n\u2028\\") == [
        b"\xe4\xbd", b"\xa0", b"\n\n", b"\n", "\u2028".encode(), b"\\"
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "the é 你好 🦙 \r\n\t x", "\x00\x85\u2029"])
def test_text_comes_back(text: str, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(write_vocabulary(tmp_path))
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_id_0_begins_and_ends_texts_and_is_special(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(write_vocabulary(tmp_path))
    assert (tokenizer.bos_id, tokenizer.eos_ids, tokenizer.vocabulary.prefix_ids) == (0, (0,), ())
    assert tokenizer.vocab_size == len(tokens()) + 1
    assert tokenizer.encode(f"the{END}")[-1] == 0
    assert 0 not in tokenizer.encode(f"the{END}", parse_special=False)
    assert (tokenizer.token_id(END), tokenizer.token_id("the")) == (0, tokens().index(b"the") + 1)


def test_an_empty_line_that_ends_answers_still_separates_paragraphs(tmp_path: Path) -> None:
    added = {"0": {"content": END}, "900": {"content": "<tool>"}}
    tokenizer = configured(tmp_path, eos_token="\n\n", bos_token=END, added_tokens_decoder=added)
    blank = tokens().index(b"\n\n") + 1
    assert (tokenizer.eos_ids, tokenizer.vocab_size) == ((blank,), 901)
    assert tokenizer.encode("the\n\nthe", parse_special=False)[1] == blank
    assert tokenizer.encode("<tool>") == [900]


def test_special_tokens_of_the_vocabulary_are_no_plain_text(tmp_path: Path) -> None:
    added = {str(tokens().index(b"User") + 1): {"content": "User"}}
    tokenizer = configured(tmp_path, add_bos_token=True, added_tokens_decoder=added)
    assert tokenizer.encode("User") == [0, tokens().index(b"User") + 1]
    assert pieces(tokenizer, "User")[1:] == [b"U", b"s", b"e", b"r"]


def test_a_role_without_a_token_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="eos_token is '<end>', which is not a token"):
        configured(tmp_path, eos_token="<end>")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("900 the 3", "not an id, a token and its length"),
        ("900 'the' 4", "not an id, a token and its length"),
        ("x 'abc' 3", "not an id, a token and its length"),
        ("900 12 2", "not an id, a token and its length"),
        ("900 'the' 3", "the token occurs twice"),
        ("1 'abc' 3", "share"),
    ],
)
def test_damaged_files_are_refused(line: str, message: str, tmp_path: Path) -> None:
    path = write_vocabulary(tmp_path) / "rwkv_vocab_v20230424.txt"
    path.write_text("\n".join([*lines(), line]), encoding="utf-8")
    with pytest.raises(TokenizerError, match=message):
        load_tokenizer(tmp_path)


def test_a_file_without_a_byte_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rwkv_vocab_v1.txt").write_text("\n".join(lines()[5:]), encoding="utf-8")
    with pytest.raises(TokenizerError, match="has no token for byte 0x00"):
        load_tokenizer(tmp_path)
