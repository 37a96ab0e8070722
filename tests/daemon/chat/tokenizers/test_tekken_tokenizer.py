from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.tekken_tokenizer import OLDER_SPECIALS
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer

Copy = Callable[[str], Path]
Load = Callable[[str], Tokenizer]


@pytest.fixture
def path(copy: Copy) -> Path:
    return copy("tekken_mistral") / "tekken.json"


def changed(path: Path, **changes: Any) -> Path:
    """Return the file with changed values, of its own or of its ``config``."""
    content = json.loads(path.read_text())
    for name, value in changes.items():
        (content["config"] if name in content["config"] else content)[name] = value
    path.write_text(json.dumps(content))
    return path.parent


def test_special_tokens_come_first_and_are_filled_up(load: Load) -> None:
    tokenizer = load("tekken_mistral")
    assert [token.text for token in tokenizer.vocabulary.specials[:20]] == list(OLDER_SPECIALS)
    assert tokenizer.token_id("<SPECIAL_23>") == 23
    assert (tokenizer.bos_id, tokenizer.eos_ids) == (1, (2,))
    assert tokenizer.encode("a") == [1, 24 + ord("a")]


def test_tokens_beyond_the_vocabulary_are_not_used(load: Load) -> None:
    assert load("tekken_mistral").vocab_size == 24 + 350


def test_special_tokens_of_a_request_stay_text(load: Load) -> None:
    tokenizer = load("tekken_mistral")
    assert tokenizer.encode("[INST]", add_special=False) == [3]
    plain = tokenizer.encode("[INST]", add_special=False, parse_special=False)
    assert min(plain) >= 24
    assert tokenizer.decode(plain) == "[INST]"


def test_newer_files_list_their_special_tokens(path: Path) -> None:
    listed = [
        {"rank": rank, "token_str": text, "is_control": True}
        for rank, text in enumerate(["<unk>", "<s>", "</s>", "[THINK]"])
    ]
    tokenizer = load_tokenizer(changed(path, special_tokens=listed))
    assert tokenizer.encode("[THINK]", add_special=False) == [3]
    assert tokenizer.token_id("[AVAILABLE_TOOLS]") is None


def token(content: bytes | str, rank: int) -> dict[str, Any]:
    return {"rank": rank, "token_bytes": content, "token_str": None}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"default_vocab_size": 400}, "360 tokens, but its configuration uses 376"),
        ({"default_vocab_size": 20}, "its configuration uses -4"),
        ({"default_vocab_size": 124}, "no token for byte 0x64"),
        ({"pattern": "(unclosed"}, "the pattern cannot be used"),
        ({"pattern": 3}, "does not have the expected form"),
        ({"default_num_special_tokens": 10, "default_vocab_size": 360}, r"outside 0\.\.9"),
        (
            {"special_tokens": [{"rank": 0, "token_str": "<s>"}, {"rank": 1, "token_str": "<s>"}]},
            "share a text",
        ),
        ({"special_tokens": [{"rank": 99, "token_str": "<s>"}]}, r"outside 0\.\.23"),
        ({"vocab": [token("YQ==", 1)] * 360}, "ranks are not in order"),
        ({"vocab": [token("YQ==", rank) for rank in range(360)]}, "a token occurs twice"),
        ({"vocab": [token("!", rank) for rank in range(360)]}, "a token is not base64"),
    ],
)
def test_damage_is_refused_by_name(path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TokenizerError, match=message) as caught:
        load_tokenizer(changed(path, **changes))
    assert str(path) in caught.value.message


def test_a_role_that_is_not_listed_is_refused(path: Path) -> None:
    (path.parent / "tokenizer_config.json").write_text('{"eos_token": "<|gone|>"}')
    with pytest.raises(TokenizerError, match="not among the added tokens"):
        load_tokenizer(path.parent)
