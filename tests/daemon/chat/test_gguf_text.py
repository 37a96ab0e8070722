"""Templates and capabilities are read from a GGUF file's metadata, and read again if the file has changed."""

from __future__ import annotations

import os
from pathlib import Path

import jinja2
import pytest

from llmd.api.errors import CheckpointError, TemplateError
from llmd.chat.gguf_text import gguf_fills_in, gguf_templates
from tests.corrupt.gguf_bytes import STRING, U32, gguf, key, listed, text


def write(path: Path, *keys: bytes) -> Path:
    path.write_bytes(gguf(keys))
    return path


def template(name: str, content: str) -> bytes:
    return key(name, STRING, text(content))


def test_templates_have_the_names_of_their_keys(tmp_path: Path) -> None:
    keys = [template("tokenizer.chat_template", "a"), template("tokenizer.chat_template.tool_use", "b")]
    names = listed("tokenizer.chat_templates", STRING, [text("tool_use")])
    found = gguf_templates(write(tmp_path / "m.gguf", *keys, names))
    assert found == {"default": "a", "tool_use": "b"}


def test_a_file_without_text_has_nothing_of_it(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf")
    assert (gguf_templates(path), gguf_fills_in(path)) == ({}, False)


def test_filling_in_is_told_by_the_tokens(tmp_path: Path) -> None:
    tokens = [text(token) for token in ("<fim_prefix>", "<fim_suffix>", "<fim_middle>")]
    assert gguf_fills_in(write(tmp_path / "m.gguf", listed("tokenizer.ggml.tokens", STRING, tokens)))


def test_templates_are_read_without_the_vocabulary(tmp_path: Path) -> None:
    no_text = listed("tokenizer.ggml.tokens", STRING, [(1).to_bytes(8, "little") + b"\xff"])
    path = write(tmp_path / "m.gguf", template("tokenizer.chat_template", "a"), no_text)
    assert gguf_templates(path) == {"default": "a"}
    with pytest.raises(CheckpointError, match="not UTF-8"):
        gguf_fills_in(path)


def test_a_model_of_another_form_has_no_such_text(tmp_path: Path) -> None:
    assert (gguf_templates(tmp_path), gguf_fills_in(tmp_path)) == (None, None)


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", template("tokenizer.chat_template", "a"))
    gguf_templates(path)
    write(path, template("tokenizer.chat_template", "b"))
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    assert gguf_templates(path) == {"default": "b"}


def test_a_template_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", key("tokenizer.chat_template", U32, bytes(4)))
    with pytest.raises(TemplateError, match="'default' is a int"):
        gguf_templates(path)


def test_a_link_to_nowhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").symlink_to("absent")
    with pytest.raises(CheckpointError, match="cannot be read"):
        gguf_templates(tmp_path)


def test_a_template_that_a_file_only_names_is_written_out(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", template("tokenizer.chat_template", "rwkv-world"))
    (found,) = (gguf_templates(path) or {}).values()
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " Hi\n"}]
    rendered = jinja2.Template(found).render(messages=messages, add_generation_prompt=True)
    assert rendered == "System: Be brief.\n\nUser: Hi\n\nAssistant:"
