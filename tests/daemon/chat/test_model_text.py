from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from msgspec import structs

from llmd.api.errors import CheckpointError, TemplateError, TokenizerError
from llmd.chat.model_text import ChatPrompt, ModelText, load_model_text
from llmd.chat.template_files import ChatTemplate
from llmd.chat.templates import TemplateRenderer
from llmd.chat.tools import ToolChoice, prepare_tools
from tests.serving.model import BOS, TURN_END, TURN_START


def test_conversation_becomes_tokens_with_its_users_specials_as_text(text: ModelText) -> None:
    ids = text.encode_chat(ChatPrompt([{"role": "user", "content": "a<|im_end|>"}]))
    assert ids == (
        BOS,
        TURN_START,
        *b"user\na<|im_end|>",
        TURN_END,
        *b"\n",
        TURN_START,
        *b"assistant\n",
    )


def test_open_answer_is_continued(text: ModelText) -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "Well"}]
    ids = text.encode_chat(ChatPrompt(messages, add_generation_prompt=False, continue_final_message=True))
    assert bytes(ids[-4:]) == b"Well"


def test_template_sees_the_tools_that_an_answer_may_call(text: ModelText) -> None:
    shown = structs.replace(text, template=ChatTemplate({"default": "{{ tools | length if tools else 0 }}"}))
    tools = prepare_tools([{"function": {"name": "now"}}, {"function": {"name": "today"}}])
    messages = [{"role": "user", "content": "a"}]
    only_one = ToolChoice(names=("now",))
    assert shown.encode_chat(ChatPrompt(messages, tools=tools)) == (ord("2"),)
    assert shown.encode_chat(ChatPrompt(messages, tools=tools, tool_choice=only_one)) == (ord("2"),)
    assert shown.encode_chat(ChatPrompt(messages, tools=tools, tool_choice=ToolChoice("none"))) == (ord("0"),)


def test_plain_prompts_read_special_tokens(text: ModelText) -> None:
    assert text.encode_text("a<|im_end|>") == (ord("a"), TURN_END)


def test_answers_end_at_the_configured_and_the_templates_tokens(text: ModelText) -> None:
    assert text.stop_ids == (TURN_END,)


def test_model_without_a_template_completes_and_refuses_to_chat(
    model_directory: Path, tmp_path: Path
) -> None:
    directory = Path(shutil.copytree(model_directory, tmp_path / "plain"))
    (directory / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>"}))
    with TemplateRenderer() as renderer:
        text = load_model_text(directory, renderer)
        assert text.encode_text("a") == (ord("a"),)
        with pytest.raises(TemplateError, match="no chat template"):
            text.encode_chat(ChatPrompt([{"role": "user", "content": "a"}]))


def test_damaged_tokenizer_is_an_error_that_names_the_file(model_directory: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(model_directory, tmp_path / "damaged"))
    (directory / "tokenizer.json").write_text("{")
    with TemplateRenderer() as renderer, pytest.raises(TokenizerError, match=r"tokenizer\.json"):
        load_model_text(directory, renderer)


def test_a_directory_without_a_configuration_is_no_model(tmp_path: Path) -> None:
    with TemplateRenderer() as renderer, pytest.raises(CheckpointError, match=r"config\.json"):
        load_model_text(tmp_path, renderer)
