from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from llmd.api.errors import ModelError
from llmd.chat.answers.stop_tokens import end_of_turn_ids, ids_of, stop_token_ids
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.chat.templates.template_files import ChatTemplate
from llmd.chat.tokenizers.tokenizer import Tokenizer

Load = Callable[[str], Tokenizer]


def write(directory: Path, name: str, content: object) -> None:
    (directory / name).write_text(json.dumps(content))


def test_end_tokens_of_all_files_stop(tmp_path: Path, load: Load) -> None:
    write(tmp_path, "generation_config.json", {"eos_token_id": [7, 9]})
    write(tmp_path, "config.json", {"eos_token_id": 9, "text_config": {"eos_token_id": [11]}})
    assert stop_token_ids(tmp_path, load("sentencepiece_llama")) == (2, 7, 9, 11)


def test_tokenizer_alone_says_where_answers_end(tmp_path: Path, load: Load) -> None:
    write(tmp_path, "config.json", {})
    assert stop_token_ids(tmp_path, load("tiktoken_llama3")) == (361,)


@pytest.mark.parametrize("value", ["</s>", "\ud800"])
def test_end_token_that_is_no_id_is_refused(value: str, tmp_path: Path, load: Load) -> None:
    write(tmp_path, "config.json", {"eos_token_id": value})
    with pytest.raises(ModelError, match=r"config\.json"):
        stop_token_ids(tmp_path, load("sentencepiece_llama"))


def test_token_that_the_template_writes_after_an_answer_ends_a_turn(
    load: Load, renderer: TemplateRenderer, chatml: ChatTemplate
) -> None:
    tokenizer = load("byte_level_json")
    assert end_of_turn_ids(renderer, chatml, tokenizer) == (tokenizer.token_id("<|im_end|>"),)


@pytest.mark.parametrize(
    "source", ["{{ messages[1].content }} and so on<|im_end|>", "{{ raise_exception('no') }}", "{{"]
)
def test_template_that_tells_nothing_adds_nothing(
    source: str, load: Load, renderer: TemplateRenderer
) -> None:
    assert end_of_turn_ids(renderer, ChatTemplate({"default": source}), load("byte_level_json")) == ()


def test_texts_that_are_tokens_have_ids(load: Load) -> None:
    tokenizer = load("byte_level_json")
    assert ids_of(["<|im_end|>", "no token"], tokenizer) == (tokenizer.token_id("<|im_end|>"),)
