"""The tokenizer, template and generation files of a model become GGUF keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import TokenizerError
from llmd.builtin.guide import guide_directory
from llmd.chat.templates.template_files import template_sources
from llmd.conversion.text_keys import text_keys
from tests.serving.gguf_model import write_gguf_model
from tests.serving.model import BOS, TEMPLATE, TURN_END


def change(file: Path, **values: Any) -> None:
    stated = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(stated | values))


def test_tokens_template_and_ends_are_told(model: Path) -> None:
    keys = text_keys(model, 262).keys
    assert len(keys["tokenizer.ggml.tokens"]) == 262
    assert keys["tokenizer.ggml.bos_token_id"] == BOS
    assert keys["tokenizer.ggml.eos_token_id"] == TURN_END
    assert keys["tokenizer.chat_template"] == TEMPLATE


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(model: Path) -> None:
    with pytest.raises(TokenizerError, match="has 260 tokens, but the model has 259 embeddings"):
        text_keys(model, 259)


def test_every_token_that_ends_an_answer_is_told_as_far_as_there_is_room(model: Path) -> None:
    change(model / "generation_config.json", eos_token_id=[3, 1, TURN_END])
    found = text_keys(model, 260)
    ends = [found.keys[f"tokenizer.ggml.{role}_token_id"] for role in ("eos", "eot", "eom")]
    assert ends == [TURN_END, 1, 3]
    assert not found.notices
    change(model / "generation_config.json", eos_token_id=[5, 3, 1])
    (notice,) = text_keys(model, 260).notices
    assert notice == "a GGUF file can name only 3 tokens that end answers: [5] are left out"


def test_sampling_and_further_templates_are_told(model: Path) -> None:
    change(model / "generation_config.json", temperature=0.5, top_k=7)
    named = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]
    change(model / "tokenizer_config.json", chat_template=named, pad_token="<s>")
    keys = text_keys(model, 260).keys
    assert (keys["general.sampling.temp"], keys["general.sampling.top_k"]) == (0.5, 7)
    assert (keys["tokenizer.chat_template"], keys["tokenizer.chat_template.tool_use"]) == ("d", "t")
    assert keys["tokenizer.chat_templates"] == ["tool_use"]
    assert keys["tokenizer.ggml.padding_token_id"] == BOS


def test_the_guide_is_greedy_has_a_template_and_is_for_llmd_alone() -> None:
    found = text_keys(guide_directory(), 2048)
    (notice,) = found.notices
    assert notice.startswith("only llmd can read the file")
    keys = found.keys
    assert keys["general.sampling.temp"] == 0
    assert keys["tokenizer.chat_template"] == template_sources(guide_directory())["default"]


def test_keys_of_a_gguf_file_stay_as_they_are(tmp_path: Path) -> None:
    path = write_gguf_model(tmp_path / "m.gguf", changes={"tokenizer.ggml.odd": "x", "general.odd": "y"})
    keys = text_keys(path, 260).keys
    assert keys["tokenizer.ggml.odd"] == "x"
    assert keys["tokenizer.chat_template"] == TEMPLATE
    assert "general.odd" not in keys


def test_a_model_without_a_tokenizer_is_told_of(model: Path) -> None:
    (model / "tokenizer.json").unlink()
    (model / "tokenizer_config.json").unlink()
    found = text_keys(model, 260)
    assert (found.keys, found.notices) == (
        {},
        ("the model has no tokenizer, so the GGUF file has none either",),
    )
