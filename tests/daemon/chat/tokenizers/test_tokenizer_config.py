from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmd.api.errors import TokenizerError
from llmd.chat.tokenizers.tokenizer_config import AddedToken, TokenizerConfig, read_tokenizer_config


def write(directory: Path, name: str, content: object) -> None:
    (directory / name).write_text(json.dumps(content))


def test_absent_files_say_nothing(tmp_path: Path) -> None:
    assert read_tokenizer_config(tmp_path) == TokenizerConfig()


def test_token_is_named_by_its_text_or_by_an_object(tmp_path: Path) -> None:
    write(
        tmp_path,
        "tokenizer_config.json",
        {"bos_token": {"content": "<s>", "lstrip": False}, "eos_token": "</s>", "unk_token": None},
    )
    config = read_tokenizer_config(tmp_path)
    assert (config.name("bos_token"), config.name("eos_token"), config.name("unk_token")) == (
        "<s>",
        "</s>",
        None,
    )


def test_configuration_wins_over_the_special_tokens_map(tmp_path: Path) -> None:
    write(
        tmp_path,
        "special_tokens_map.json",
        {"eos_token": "<old>", "additional_special_tokens": ["<a>", {"content": "<b>"}]},
    )
    write(tmp_path, "tokenizer_config.json", {"eos_token": "<new>"})
    assert read_tokenizer_config(tmp_path).special_texts == {"<new>", "<a>", "<b>"}


def test_extra_special_tokens_are_a_list_or_have_roles(tmp_path: Path) -> None:
    write(tmp_path, "tokenizer_config.json", {"extra_special_tokens": ["<a>", "<b>"]})
    assert read_tokenizer_config(tmp_path).special_texts == {"<a>", "<b>"}
    write(tmp_path, "tokenizer_config.json", {"extra_special_tokens": {"image_token": "<image>"}})
    assert read_tokenizer_config(tmp_path).name("image_token") == "<image>"
    newest = {"extra_special_tokens": ["<a>"], "model_specific_special_tokens": {"image_token": "<image>"}}
    write(tmp_path, "tokenizer_config.json", newest)
    config = read_tokenizer_config(tmp_path)
    assert config.name("image_token") == "<image>"
    assert config.special_texts == {"<a>", "<image>"}


def test_added_tokens_of_both_generations_are_joined(tmp_path: Path) -> None:
    write(tmp_path, "added_tokens.json", {"<a>": 7, "<eos>": 8})
    write(
        tmp_path,
        "tokenizer_config.json",
        {"eos_token": "<eos>", "added_tokens_decoder": {"9": {"content": "<b>", "special": False}}},
    )
    added = read_tokenizer_config(tmp_path).added
    assert added == {
        7: AddedToken("<a>", special=False),
        8: AddedToken("<eos>"),
        9: AddedToken("<b>", special=False),
    }


@pytest.mark.parametrize(
    ("name", "adds"),
    [
        ("LlamaTokenizer", True),
        ("LlamaTokenizerFast", True),
        ("GemmaTokenizer", True),
        ("Qwen2Tokenizer", None),
        (None, None),
    ],
)
def test_some_classes_write_bos_unless_told_otherwise(name: str | None, adds: object, tmp_path: Path) -> None:
    write(tmp_path, "tokenizer_config.json", {"tokenizer_class": name})
    assert read_tokenizer_config(tmp_path).add_bos is adds
    write(tmp_path, "tokenizer_config.json", {"tokenizer_class": name, "add_bos_token": False})
    assert read_tokenizer_config(tmp_path).add_bos is False


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer_config.json", {"bos_token": 7}),
        ("tokenizer_config.json", {"additional_special_tokens": "<a>"}),
        ("tokenizer_config.json", {"additional_special_tokens": [{}]}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"1": {"special": True}}}),
        ("tokenizer_config.json", {"add_bos_token": "yes"}),
        ("tokenizer_config.json", []),
        ("special_tokens_map.json", {"eos_token": ["</s>"]}),
        ("added_tokens.json", {"<a>": 7, "<b>": 7}),
        ("added_tokens.json", {"<a>": "7"}),
    ],
)
def test_value_of_another_form_is_refused_by_file(name: str, content: object, tmp_path: Path) -> None:
    write(tmp_path, name, content)
    with pytest.raises(TokenizerError, match=name) as caught:
        read_tokenizer_config(tmp_path)
    assert caught.value.hint
