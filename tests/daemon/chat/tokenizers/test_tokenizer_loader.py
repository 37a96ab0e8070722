from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
from llmd.chat.tokenizers.tiktoken_tokenizer import TiktokenTokenizer
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from tests.corrupt import gguf_bytes
from tests.serving.gguf_model import write_gguf_model

GOLDEN = Path(__file__).parents[3] / "golden/tokenizers"


def cases(kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((GOLDEN / kind / "expected.json").read_text())
    return found


def test_encodes_tricky_texts_as_transformers_does(kind: str, tokenizer: Tokenizer) -> None:
    texts = [case["text"] for case in cases(kind)]
    expected = {case["text"]: case["ids"] for case in cases(kind)}
    assert {text: tokenizer.encode(text, add_special=False) for text in texts} == expected


def test_decodes_as_transformers_does(kind: str, tokenizer: Tokenizer) -> None:
    # transformers' slow Llama tokenizer drops the legacy dummy prefix twice, and so loses a space of the
    # text.
    texts = {"sentencepiece_legacy": ["Hello world", "naïve café — Größe Ⅷ ﬁ"]}.get(kind)
    compared = [case for case in cases(kind) if texts is None or case["text"] in texts]
    assert [tokenizer.decode(case["ids"]) for case in compared] == [case["decoded"] for case in compared]


def test_legacy_dummy_prefix_is_dropped_once(load: Any) -> None:
    tokenizer = load("sentencepiece_legacy")
    for text in (" ", "a", " leading and trailing  ", "          ten spaces"):
        assert tokenizer.decode(tokenizer.encode(text), skip_special=True) == text


def test_tokens_of_a_text_hold_its_bytes(kind: str, tokenizer: Tokenizer) -> None:
    text = "Größe 👩‍👩‍👧 你好"
    content = b"".join(map(tokenizer.token_bytes, tokenizer.encode(text, add_special=False)))
    assert content.removeprefix(b" ") == text.encode()


def test_every_id_has_bytes_and_none_outside_has(tokenizer: Tokenizer) -> None:
    assert all(tokenizer.token_bytes(token_id) for token_id in range(tokenizer.vocab_size))
    assert tokenizer.token_bytes(tokenizer.vocab_size) == b""
    assert tokenizer.token_bytes(2**31) == b""


def test_tokenizer_model_is_told_apart_by_its_content(load: Any) -> None:
    assert isinstance(load("tiktoken_llama3"), TiktokenTokenizer)
    assert isinstance(load("sentencepiece_llama"), SentencePieceTokenizer)


def test_mistrals_files_are_read_where_there_is_no_other(copy: Callable[[str], Path], load: Any) -> None:
    directory = copy("sentencepiece_legacy")
    (directory / "tokenizer.model").rename(directory / "tokenizer.model.v3")
    assert load_tokenizer(directory).vocabulary == load("sentencepiece_legacy").vocabulary
    (directory / "tekken.json").write_bytes((GOLDEN / "tekken_mistral/tekken.json").read_bytes())
    assert load_tokenizer(directory).vocabulary == load("tekken_mistral").vocabulary


@pytest.mark.parametrize("named_by", ["file", "directory"])
def test_the_tokenizer_of_a_gguf_model_stands_in_its_file(tmp_path: Path, named_by: str) -> None:
    file = write_gguf_model(tmp_path / "m.gguf")
    (tmp_path / "tokenizer.json").write_text("of something else")
    tokenizer = load_tokenizer(file if named_by == "file" else tmp_path)
    assert tokenizer.encode("<s>a", add_special=False) == [256, ord("a")]


def test_a_gguf_file_with_damaged_tokens_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    tokens = gguf_bytes.listed("tokenizer.ggml.tokens", gguf_bytes.STRING, [gguf_bytes.text(b"\xff")])
    path.write_bytes(gguf_bytes.gguf([tokens]))
    with pytest.raises(TokenizerError, match="UTF-8"):
        load_tokenizer(path)
    path.write_bytes(b"GGUF")
    with pytest.raises(TokenizerError, match=r"m\.gguf"):
        load_tokenizer(path)


def test_directory_without_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="has no tokenizer"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"version https://git-lfs.github.com/spec/v1\n", b"\x00" * 64, b"{}"]
)
def test_tokenizer_model_that_is_neither_form_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tokenizer.model").write_bytes(content)
    with pytest.raises(TokenizerError, match=r"tokenizer\.model is neither"):
        load_tokenizer(tmp_path)


def test_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").mkdir()
    with pytest.raises(TokenizerError, match=r"tokenizer\.json: not a regular file"):
        load_tokenizer(tmp_path)


def test_a_link_that_leads_nowhere_is_not_passed_over(copy: Callable[[str], Path]) -> None:
    directory = copy("vocab_merges_gpt2")
    (directory / "tokenizer.json").symlink_to("absent")
    with pytest.raises(TokenizerError, match=r"tokenizer\.json: the file is missing"):
        load_tokenizer(directory)


def test_token_that_is_a_lone_surrogate_is_refused(kind: str, copy: Callable[[str], Path]) -> None:
    directory = copy(kind)
    (directory / "tokenizer_config.json").write_text('{"eos_token": "\\ud800"}')
    with pytest.raises(TokenizerError) as caught:
        load_tokenizer(directory)
    assert str(directory) in caught.value.message
