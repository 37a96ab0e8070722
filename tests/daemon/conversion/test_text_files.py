"""The text files of a converted model: existing ones, or made from a GGUF file's keys."""

from __future__ import annotations

import json
from pathlib import Path

from llmd.conversion.text_files import has_tokenizer, text_files
from tests.serving.gguf_model import write_gguf_model
from tests.serving.model import TEMPLATE


def test_of_a_directory_what_a_model_needs_is_taken_and_nothing_else(model: Path) -> None:
    for name in ("LICENSE", "chat_template.jinja", "modeling.py", "notes.md", "params.json"):
        (model / name).write_text(name)
    (model / "additional_chat_templates").mkdir()
    (model / "additional_chat_templates" / "tool_use.jinja").write_text("t")
    files = text_files(model)
    assert set(files) == {
        "LICENSE", "additional_chat_templates/tool_use.jinja", "chat_template.jinja", "tokenizer.json",
        "tokenizer_config.json",
    }  # fmt: skip
    assert files["tokenizer.json"] == (model / "tokenizer.json").read_bytes()


def test_a_gguf_file_has_tokenizer_template_and_sampling(tmp_path: Path) -> None:
    sampling = {"general.sampling.temp": 0.5, "general.sampling.top_k": 7}
    files = text_files(write_gguf_model(tmp_path / "m.gguf", changes=sampling))
    config = json.loads(files["tokenizer_config.json"])
    assert config["chat_template"] == TEMPLATE
    assert json.loads(files["generation_config.json"]) == {"temperature": 0.5, "top_k": 7}
    assert "tokenizer.json" in files


def test_named_templates_stay_named_and_greedy_is_no_temperature(tmp_path: Path) -> None:
    changes = {"tokenizer.chat_template.tool_use": "t", "general.sampling.temp": 0.0}
    files = text_files(write_gguf_model(tmp_path / "m.gguf", changes=changes))
    config = json.loads(files["tokenizer_config.json"])
    assert {named["name"]: named["template"] for named in config["chat_template"]} == {
        "default": TEMPLATE,
        "tool_use": "t",
    }
    assert json.loads(files["generation_config.json"]) == {"do_sample": False}


def test_a_model_may_have_no_tokenizer(tmp_path: Path, model: Path) -> None:
    assert has_tokenizer(model)
    (model / "tokenizer.json").unlink()
    (model / "tokenizer_config.json").unlink()
    assert not has_tokenizer(model)
    (model / "tekken.json").write_text("{}")
    assert has_tokenizer(model)
    path = write_gguf_model(tmp_path / "m.gguf")
    assert has_tokenizer(path)
    bare = write_gguf_model(tmp_path / "bare.gguf", changes={"tokenizer.ggml.tokens": None})
    assert not has_tokenizer(bare)
    assert text_files(bare) == {}
