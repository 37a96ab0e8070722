"""Damaged tokenizers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llmd.api import TokenizerError
from tests.corrupt.case import Case
from tests.corrupt.small_model import tokenizer

TOKENIZER_FILE = "tokenizer.json"
MODEL_FILE = "tokenizer.model"
GOLDEN = Path(__file__).parent.parent / "golden" / "tokenizers"
CONFIG_FILE = "tokenizer_config.json"


def file_case(name: str, damage: Callable[[Path], object], *mentions: str) -> Case:
    return Case(
        f"tokenizer {name}",
        lambda directory: damage(directory / TOKENIZER_FILE),
        TokenizerError,
        mentions,
    )


def content_case(name: str, change: Callable[[dict[str, Any]], object], *mentions: str) -> Case:
    """A change of the parsed ``tokenizer.json``."""

    def damage(path: Path) -> None:
        content = tokenizer()
        change(content)
        path.write_text(json.dumps(content))

    return file_case(name, damage, *(mentions or (TOKENIZER_FILE,)))


def beside_case(name: str, files: dict[str, str | bytes], *mentions: str) -> Case:
    """Return a case with other files next to ``tokenizer.json``."""

    def damage(directory: Path) -> None:
        write_files(directory, files)

    return Case(f"tokenizer {name}", damage, TokenizerError, mentions)


def instead_case(name: str, files: dict[str, str | bytes], *mentions: str) -> Case:
    """Other files in place of ``tokenizer.json``."""

    def damage(directory: Path) -> None:
        (directory / TOKENIZER_FILE).unlink()
        write_files(directory, files)

    return Case(f"tokenizer {name}", damage, TokenizerError, mentions)


def golden_case(name: str, tokenizer_name: str, change: Callable[[bytes], bytes]) -> Case:
    """A ``tokenizer.model`` that another tool wrote, changed."""

    def damage(directory: Path) -> None:
        (directory / TOKENIZER_FILE).unlink()
        content = (GOLDEN / tokenizer_name / MODEL_FILE).read_bytes()
        (directory / MODEL_FILE).write_bytes(change(content))

    return Case(f"tokenizer {name}", damage, TokenizerError, (MODEL_FILE,))


def write_files(directory: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        (directory / name).write_bytes(content.encode() if isinstance(content, str) else content)


def grow_vocabulary(content: dict[str, Any]) -> None:
    content["model"]["vocab"]["one too many"] = 260


FILE_CASES = (
    file_case("absent", Path.unlink, "has no tokenizer"),
    file_case("empty", lambda path: path.write_bytes(b""), TOKENIZER_FILE),
    file_case("cut", lambda path: os.truncate(path, path.stat().st_size // 2), TOKENIZER_FILE),
    file_case("a list", lambda path: path.write_text("[]"), TOKENIZER_FILE),
    file_case("not utf-8", lambda path: path.write_bytes(b'{"model": "\xff"}'), TOKENIZER_FILE),
    file_case("nested deeply", lambda path: path.write_bytes(b'{"a":' * 200_000), TOKENIZER_FILE),
    file_case("a git lfs pointer", lambda path: path.write_text("version https://git-lfs"), TOKENIZER_FILE),
)

CONTENT_CASES = (
    content_case("without a model", lambda content: content.pop("model")),
    content_case("of an unknown model", lambda content: content["model"].update(type="BPEX")),
    content_case("with a merge of unknown pieces", lambda content: content["model"].update(merges=["qq zz"])),
    content_case("with ids of text", lambda content: content["model"]["vocab"].update(a="7")),
    content_case("with a negative id", lambda content: content["model"]["vocab"].update(a=-1)),
    content_case("with one id twice", lambda content: content["model"]["vocab"].update(a=5), "one id"),
    content_case("without a decoder", lambda content: content.update(decoder=None)),
    content_case("with an unknown decoder", lambda content: content.update(decoder={"type": "Morse"})),
    content_case("with added tokens of text", lambda content: content.update(added_tokens="<s>")),
    content_case("with more tokens than embeddings", grow_vocabulary, "261 tokens", "260"),
)

OTHER_FILES_CASES = (
    beside_case("config cut", {CONFIG_FILE: '{"bos_token": "<s'}, CONFIG_FILE),
    beside_case("config a list", {CONFIG_FILE: "[]"}, CONFIG_FILE),
    beside_case("config with eos of a number", {CONFIG_FILE: '{"eos_token": 2}'}, CONFIG_FILE, "eos_token"),
    beside_case("config with unknown bos", {CONFIG_FILE: '{"bos_token": "<nope>"}'}, "<nope>"),
    instead_case(
        "vocabulary without merges", {"vocab.json": json.dumps(tokenizer()["model"]["vocab"])}, "merges.txt"
    ),
    instead_case(
        "vocabulary cut", {"vocab.json": '{"a": 1, ', "merges.txt": "#version: 0.2\n"}, "vocab.json"
    ),
    instead_case("model empty", {MODEL_FILE: b""}, MODEL_FILE),
    instead_case("model of noise", {MODEL_FILE: bytes(range(256)) * 4}, MODEL_FILE),
    instead_case("model cut", {MODEL_FILE: b"\n\x0e\n\x05<unk>\x15\0\0"}, MODEL_FILE),
    instead_case("model of too few ranks", {MODEL_FILE: "IQ== 0\nIg== 1\n"}, MODEL_FILE),
    instead_case("model with a bad line", {MODEL_FILE: "IQ== 0\n!!! 1\n"}, MODEL_FILE, "line 2"),
    golden_case(
        "of SentencePiece cut", "sentencepiece_llama", lambda content: content[: len(content) // 2 + 1]
    ),
    golden_case(
        "of SentencePiece with a damaged byte piece",
        "sentencepiece_llama",
        lambda content: content.replace(b"<0xDF>", b"<0x\x84F>"),
    ),
    golden_case(
        "of SentencePiece with a damaged piece",
        "sentencepiece_llama",
        lambda content: content.replace("▁".encode(), b"\xe2\x96\xff"),
    ),
    golden_case("of ranks cut", "tiktoken_llama3", lambda content: content[:900]),
    golden_case("of ranks twice", "tiktoken_llama3", lambda content: content + content),
)

CASES = FILE_CASES + CONTENT_CASES + OTHER_FILES_CASES
