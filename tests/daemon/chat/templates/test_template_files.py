from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from llmd.api.errors import TemplateError
from llmd.chat.templates.template_files import ChatTemplate, load_chat_template
from llmd.chat.tokenizers.tokenizer import Tokenizer
from tests.serving.gguf_model import write_gguf_model

Load = Callable[[str], Tokenizer]


@pytest.fixture
def found(tmp_path: Path, load: Load) -> Callable[[], ChatTemplate]:
    tokenizer = load("tiktoken_llama3")
    return lambda: load_chat_template(tmp_path, tokenizer)


Found = Callable[[], ChatTemplate]


def write_config(directory: Path, template: object) -> None:
    (directory / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))


def test_file_of_its_own_wins_over_the_configuration(tmp_path: Path, found: Found) -> None:
    (tmp_path / "chat_template.json").write_text('{"chat_template": "oldest"}')
    assert found().source(with_tools=False) == "oldest"
    write_config(tmp_path, "configured")
    assert found().source(with_tools=False) == "configured"
    (tmp_path / "chat_template.jinja").write_text("own")
    assert found().source(with_tools=False) == "own"


def test_template_for_tools_is_used_with_tools(tmp_path: Path, found: Found) -> None:
    write_config(
        tmp_path, [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "tools"}]
    )
    assert (found().source(with_tools=False), found().source(with_tools=True)) == ("plain", "tools")


def test_additional_templates_stand_beside_the_default(tmp_path: Path, found: Found) -> None:
    (tmp_path / "chat_template.jinja").write_text("plain")
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates/tool_use.jinja").write_text("tools")
    assert (found().source(with_tools=False), found().source(with_tools=True)) == ("plain", "tools")


def test_a_gguf_file_brings_its_templates_unless_one_lies_beside_it(tmp_path: Path, found: Found) -> None:
    changes = {"tokenizer.chat_template": "plain", "tokenizer.chat_template.tool_use": "tools"}
    write_gguf_model(tmp_path / "m.gguf", changes=changes)
    assert (found().source(with_tools=False), found().source(with_tools=True)) == ("plain", "tools")
    (tmp_path / "chat_template.jinja").write_text("own")
    assert (found().source(with_tools=False), found().source(with_tools=True)) == ("own", "own")


def test_a_gguf_file_that_cannot_be_read_is_named(tmp_path: Path, found: Found) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    with pytest.raises(TemplateError, match=r"m\.gguf"):
        found()


def test_model_without_template_points_to_completions(found: Found) -> None:
    with pytest.raises(TemplateError, match="no chat template") as caught:
        found()
    assert "/v1/completions" in caught.value.hint


def test_a_template_that_is_a_link_to_nowhere_is_not_passed_over(tmp_path: Path, found: Found) -> None:
    write_config(tmp_path, "configured")
    (tmp_path / "chat_template.jinja").symlink_to("absent")
    with pytest.raises(TemplateError, match=r"chat_template\.jinja: the file is missing"):
        found()


def test_named_templates_without_default_are_refused(tmp_path: Path, found: Found) -> None:
    write_config(tmp_path, [{"name": "rag", "template": "x"}])
    with pytest.raises(TemplateError, match=r"named \['rag'\], but no 'default'"):
        found().source(with_tools=True)


@pytest.mark.parametrize("template", [7, [{"name": "default"}], ["x"]])
def test_template_of_another_form_is_refused(template: object, tmp_path: Path, found: Found) -> None:
    write_config(tmp_path, template)
    with pytest.raises(TemplateError, match=r"tokenizer_config\.json"):
        found()


def test_template_that_is_not_text_is_refused(tmp_path: Path, found: Found) -> None:
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(TemplateError, match=r"chat_template\.jinja is not UTF-8"):
        found()


def test_special_tokens_are_variables_even_where_only_the_tokenizer_knows_them(
    tmp_path: Path, found: Found
) -> None:
    (tmp_path / "tokenizer_config.json").write_text('{"chat_template": "x", "eos_token": "<|eot_id|>"}')
    assert found().variables == {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"}
    assert "<|start_header_id|>" in found().special_texts
