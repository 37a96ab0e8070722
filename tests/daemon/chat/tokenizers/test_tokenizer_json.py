from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer

Copy = Callable[[str], Path]
Load = Callable[[str], Tokenizer]


def edit(directory: Path, change: Callable[[dict[str, Any]], object], name: str = "tokenizer.json") -> None:
    content = json.loads((directory / name).read_text())
    change(content)
    (directory / name).write_text(json.dumps(content))


DAMAGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "no model": (lambda file: file.pop("model"), "missing required field `model`"),
    "no vocabulary": (lambda file: file["model"].pop("vocab"), "missing required field `vocab`"),
    "text as id": (lambda file: file["model"]["vocab"].update({"a": "7"}), "Expected `int`"),
    "id below zero": (lambda file: file["model"]["vocab"].update({"a": -1}), "integer `-1`"),
    "id given twice": (
        lambda file: file["model"]["vocab"].update({"a": file["model"]["vocab"]["b"]}),
        "one id",
    ),
    "merge of unknown tokens": (lambda file: file["model"]["merges"].append(["a", "☃"]), "☃"),
    "merge of one token": (
        lambda file: file["model"]["merges"].append(["a"]),
        "not a tokenizer that can be run",
    ),
    "added id given twice": (lambda file: file["added_tokens"].append(file["added_tokens"][0]), "one id"),
    "added id out of place": (
        lambda file: file["added_tokens"][-1].update({"id": 999}),
        "listed with id 999",
    ),
    "decoder of another kind": (
        lambda file: file.update(
            {"decoder": {"type": "CTC", "pad_token": "a", "word_delimiter_token": "b", "cleanup": True}}
        ),
        "CTC",
    ),
    "decoder of no kind": (
        lambda file: file.update({"decoder": {"type": {}}}),
        "not a tokenizer that can be run",
    ),
    "marks before pieces": (
        lambda file: file["model"].update({"continuing_subword_prefix": "a"}),  # aborts in the library
        "parts of words with 'a'",
    ),
    "marks after pieces": (
        lambda file: file["model"].update({"end_of_word_suffix": "</w>"}),
        "parts of words with '</w>'",
    ),
    "no decoder": (lambda file: file.update({"decoder": None}), "no decoder"),
    "model of unknown type": (
        lambda file: file["model"].update({"type": "Magic"}),
        "not a tokenizer that can be run",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_is_refused_by_name(damage: str, copy: Copy) -> None:
    directory = copy("byte_level_json")
    change, message = DAMAGES[damage]
    edit(directory, change)
    with pytest.raises(TokenizerError, match=message) as caught:
        load_tokenizer(directory)
    assert str(directory / "tokenizer.json") in caught.value.message
    assert caught.value.hint


PANICS = {
    "while it loads": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}},
    "while it encodes": {
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "<?>", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
            ],
            "pair": [],
            "special_tokens": {},
        }
    },
}


@pytest.mark.parametrize("fields", PANICS.values(), ids=PANICS)
def test_panic_of_the_library_is_an_error_that_names_the_model(fields: dict[str, Any], copy: Copy) -> None:
    directory = copy("byte_level_json")
    edit(directory, lambda file: file.update(fields))
    with pytest.raises(TokenizerError, match="fails in the library that runs it") as caught:
        load_tokenizer(directory)
    assert str(directory) in caught.value.message
    assert caught.value.hint


def test_panic_over_a_text_is_an_error_too(copy: Copy) -> None:
    directory = copy("byte_level_json")
    edit(directory, lambda file: file.update({"normalizer": {"type": "Prepend", "prepend": ""}}))
    tokenizer = load_tokenizer(directory)
    with pytest.raises(TokenizerError, match="fails in the library that runs it"):
        tokenizer.encode("Größe 1 <s>")


@pytest.mark.parametrize("keep", [0, 1, 100, 5000, -2])
def test_truncated_file_is_refused(keep: int, copy: Copy) -> None:
    path = copy("byte_level_json") / "tokenizer.json"
    path.write_bytes(path.read_bytes().rstrip()[:keep])
    with pytest.raises(TokenizerError, match="expected form"):
        load_tokenizer(path.parent)


@pytest.mark.parametrize("content", [b"[]", b"null", b"[" * 100_000, b'{"model": "\xff"}'])
def test_json_of_another_form_is_refused(content: bytes, copy: Copy) -> None:
    path = copy("byte_level_json") / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(TokenizerError, match="expected form"):
        load_tokenizer(path.parent)


def test_truncation_and_padding_of_a_training_run_are_switched_off(copy: Copy) -> None:
    directory = copy("byte_level_json")
    limits = {
        "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 50}, "direction": "Left", "pad_to_multiple_of": None, "pad_id": 0,
                    "pad_type_id": 0, "pad_token": "!"},
    }  # fmt: skip
    intact = load_tokenizer(directory).encode("a longer text")
    edit(directory, lambda file: file.update(limits))
    assert load_tokenizer(directory).encode("a longer text") == intact


def test_token_that_only_the_configuration_lists_is_added(copy: Copy) -> None:
    directory = copy("byte_level_json")
    edit(
        directory,
        lambda file: file["added_tokens_decoder"].update({"366": {"content": "<|new|>"}}),
        "tokenizer_config.json",
    )
    tokenizer = load_tokenizer(directory)
    assert tokenizer.encode("<|new|>", add_special=False) == [366]
    assert tokenizer.encode("<|new|>", add_special=False, parse_special=False) != [366]
    assert tokenizer.vocab_size == 367


def test_token_that_the_configuration_lists_elsewhere_is_refused(copy: Copy) -> None:
    directory = copy("byte_level_json")
    edit(
        directory,
        lambda file: file["added_tokens_decoder"].update({"900": {"content": "<|new|>"}}),
        "tokenizer_config.json",
    )
    with pytest.raises(TokenizerError, match=r"'<\|new\|>' is listed with id 900"):
        load_tokenizer(directory)


def test_end_token_that_is_not_in_the_vocabulary_is_refused(copy: Copy) -> None:
    directory = copy("byte_level_json")
    edit(directory, lambda file: file.update({"eos_token": "<|gone|>"}), "tokenizer_config.json")
    with pytest.raises(TokenizerError, match=r"eos_token is '<\|gone\|>'"):
        load_tokenizer(directory)


def test_configuration_switches_bos_off_and_on(copy: Copy) -> None:
    directory = copy("byte_level_json")
    edit(directory, lambda file: file.update({"add_bos_token": False}), "tokenizer_config.json")
    without = load_tokenizer(directory)
    edit(directory, lambda file: file.update({"post_processor": None}))
    edit(directory, lambda file: file.update({"add_bos_token": True}), "tokenizer_config.json")
    assert without.encode("a") == without.encode("a", add_special=False)
    assert load_tokenizer(directory).encode("a") == [without.bos_id, *without.encode("a")]


def test_a_whole_text_has_what_the_post_processor_writes_around_it(copy: Copy) -> None:
    directory = copy("byte_level_json")
    bos, eos = ({"SpecialToken": {"id": text, "type_id": 0}} for text in ("<|begin|>", "<|endoftext|>"))
    body = {"Sequence": {"id": "A", "type_id": 0}}
    edit(directory, lambda file: file["post_processor"].update(single=[bos, body, eos, eos]))
    edit(
        directory,
        lambda file: file["post_processor"]["special_tokens"].update(
            {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [361], "tokens": ["<|endoftext|>"]}}
        ),
    )
    tokenizer = load_tokenizer(directory)
    library = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    for text in ("", "Hello world", "<|endoftext|>", "<|begin|> twice"):
        assert tokenizer.encode_whole(text) == library.encode(text).ids
    assert tokenizer.encode("Hello") == library.encode("Hello").ids[:-2]


def test_word_pieces_are_joined_to_words(load: Load) -> None:
    tokenizer = load("encoder_bert")
    ids = tokenizer.encode("The daemon reads Größe", add_special=False)
    assert tokenizer.decode(ids) == "the daemon reads große"
