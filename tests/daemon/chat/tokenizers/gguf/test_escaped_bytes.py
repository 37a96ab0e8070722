from __future__ import annotations

from typing import Any

import pytest

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.gguf.gguf_tokenizer import load_gguf_tokenizer
from tests.daemon.chat.tokenizers.gguf.metadata import CONTROL, FILE, NORMAL, UNUSED, stated
from tests.daemon.chat.tokenizers.rwkv_vocabulary import tokens


def metadata(*more: str, **values: Any) -> dict[str, Any]:
    """Tokens as llama.cpp's converter writes them: as Python writes bytes."""
    kinds = {"<s>": CONTROL} | {repr(token)[2:-1]: NORMAL for token in tokens()}
    kinds |= dict.fromkeys(more, NORMAL) | {"[PAD900]": UNUSED}
    blank = tokens().index(b"\n\n") + 1
    ids = {"bos_token_id": 0, "eos_token_id": 0, "eot_token_id": blank}
    return stated("rwkv", kinds, **(ids | values))


def test_escapes_stand_for_bytes() -> None:
    tokenizer = load_gguf_tokenizer(metadata(r"\x41\t\'\\z"), FILE)
    ids = tokenizer.encode("there é\t你A\t'\\z\n\n")
    assert [tokenizer.token_bytes(token_id) for token_id in ids] == [
        b"there", b" ", "é".encode(), b"\t", b"\xe4\xbd", b"\xa0", b"A\t'\\z", b"\n\n"
    ]  # fmt: skip


def test_an_empty_line_ends_answers_and_stays_text() -> None:
    tokenizer = load_gguf_tokenizer(metadata(), FILE)
    blank = tokens().index(b"\n\n") + 1
    assert (tokenizer.bos_id, tokenizer.eos_ids, tokenizer.vocabulary.prefix_ids) == (0, (0, blank), ())
    assert [token.text for token in tokenizer.vocabulary.specials] == ["<s>"]
    assert tokenizer.encode("the\n\nthe")[1] == blank
    assert tokenizer.encode(r"\n") != [blank]


@pytest.mark.parametrize(
    ("token", "message"),
    [("ab\\", "ends within an escape"), (r"\x4", "ends within an escape"), (r"\x74h", "which is also token")],
)
def test_damaged_tokens_are_refused(token: str, message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        load_gguf_tokenizer(metadata(token), FILE)


def test_a_vocabulary_without_a_byte_is_refused() -> None:
    with pytest.raises(TokenizerError, match="has no token for byte"):
        load_gguf_tokenizer(stated("rwkv", {"a": NORMAL}), FILE)
