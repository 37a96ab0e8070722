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


def content(tokenizer: Tokenizer, text: str) -> list[bytes]:
    return [tokenizer.token_bytes(token_id) for token_id in tokenizer.encode(text, add_special=False)]


def test_dummy_prefix_stands_only_at_the_start(load: Load) -> None:
    tokenizer = load("sentencepiece_llama")
    assert b"".join(content(tokenizer, "q</s>q")) == b" q</s>q"
    assert b"".join(content(tokenizer, "</s>q")) == b"</s>q"


def test_legacy_dummy_prefix_stands_before_each_piece_of_text(load: Load) -> None:
    assert b"".join(content(load("sentencepiece_legacy"), "q</s>q")) == b" q</s> q"


def test_part_that_continues_a_text_has_no_dummy_prefix(load: Load) -> None:
    tokenizer = load("sentencepiece_llama")
    ids = tokenizer.encode_part("q", parse_special=True, at_start=False)
    assert tokenizer.token_bytes(ids[0]) == b"q"


def test_added_token_swallows_whitespace_as_configured(load: Load) -> None:
    tokenizer = load("sentencepiece_llama")
    assert tokenizer.encode("a<|im_end|> \n b") == tokenizer.encode("a<|im_end|>b")


def test_unknown_characters_become_bytes(load: Load) -> None:
    snowman = "☃".encode()
    assert content(load("sentencepiece_gemma"), "☃") == [snowman[:1], snowman[1:2], snowman[2:]]


def test_user_defined_symbol_that_is_special_stays_text_where_users_type_it(load: Load) -> None:
    tokenizer = load("sentencepiece_gemma")
    turn = tokenizer.token_id("<turn>")
    assert tokenizer.encode("a<turn>", add_special=False)[-1] == turn
    plain = tokenizer.encode("a<turn><turn>b", add_special=False, parse_special=False)
    assert turn not in plain
    assert tokenizer.decode(plain) == "a<turn><turn>b"


def test_user_defined_symbol_that_is_not_special_is_one_token(load: Load) -> None:
    tokenizer = load("sentencepiece_gemma")
    assert tokenizer.encode("\n\n", add_special=False, parse_special=False) == [tokenizer.token_id("\n\n")]


def test_control_pieces_are_special_without_any_configuration(load: Load) -> None:
    tokenizer = load("sentencepiece_legacy")
    assert [token.text for token in tokenizer.vocabulary.specials] == ["<unk>", "<s>", "</s>"]
    assert (tokenizer.bos_id, tokenizer.eos_ids) == (1, (2,))


@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.9, 0.999])
def test_truncated_model_is_refused(share: float, copy: Copy) -> None:
    path = copy("sentencepiece_legacy") / "tokenizer.model"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(TokenizerError, match="not a SentencePiece model") as caught:
        load_tokenizer(path.parent)
    assert str(path) in caught.value.message


@pytest.mark.parametrize("model", [b"\n", b"\n\x7f", b"\n\x00", b"\n\x02\x0a\x00", b"\ngarbage of no kind"])
def test_other_content_is_refused(model: bytes, copy: Copy) -> None:
    path = copy("sentencepiece_legacy") / "tokenizer.model"
    path.write_bytes(model)
    with pytest.raises(TokenizerError, match="not a SentencePiece model"):
        load_tokenizer(path.parent)


def test_model_without_an_unknown_piece_is_refused(copy: Copy) -> None:
    path = copy("sentencepiece_legacy") / "tokenizer.model"
    score, unknown, normal = b"\x15\x00\x00\x00\x00", b"\x18\x02", b"\x18\x01"
    whole = path.read_bytes()
    assert b"<unk>" + score + unknown in whole
    path.write_bytes(whole.replace(b"<unk>" + score + unknown, b"<unk>" + score + normal))
    with pytest.raises(TokenizerError, match="not a SentencePiece model"):
        load_tokenizer(path.parent)


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ({"401": {"content": "<s>"}}, "token '<s>' id"),
        ({"-3": {"content": "<|new|>"}}, "id -3"),
        ({"401": {"content": "<|new|>"}, "402": {"content": "<|new|>"}}, r"'<\|new\|>' id 402"),
        ({"x": {"content": "<|new|>"}}, "expected form"),
    ],
)
def test_configuration_that_contradicts_the_model_is_refused(added: object, message: str, copy: Copy) -> None:
    directory = copy("sentencepiece_legacy")
    (directory / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
    with pytest.raises(TokenizerError, match=message):
        load_tokenizer(directory)


def test_end_token_that_the_model_lacks_is_refused(copy: Copy) -> None:
    directory = copy("sentencepiece_legacy")
    (directory / "tokenizer_config.json").write_text('{"eos_token": "<|gone|>"}')
    with pytest.raises(TokenizerError, match=r"eos_token is '<\|gone\|>'"):
        load_tokenizer(directory)
