from __future__ import annotations

from pathlib import Path

from llmd.chat.capabilities import Capabilities, capability_names, read_capabilities
from tests.golden.models.embedding import SCORERS
from tests.serving.encoder import write_encoder
from tests.serving.gguf_model import write_gguf_model
from tests.serving.model import write_embedding_model, write_model
from tests.serving.reranker import write_reranker


def test_model_with_a_template_chats(tmp_path: Path) -> None:
    assert read_capabilities(write_model(tmp_path)) == Capabilities(chat=True)


def test_model_that_embeds_does_nothing_else(tmp_path: Path) -> None:
    assert read_capabilities(write_embedding_model(tmp_path)) == Capabilities(embedding=True)


def test_model_that_ranks_is_asked_nothing_else(tmp_path: Path) -> None:
    assert read_capabilities(write_reranker(tmp_path / "generates")) == Capabilities(ranking=True)
    assert read_capabilities(write_encoder(SCORERS[0], tmp_path / "scores")) == Capabilities(ranking=True)


def test_reasoning_is_told_by_the_template(tmp_path: Path) -> None:
    write_model(tmp_path)
    (tmp_path / "chat_template.jinja").write_text("{% if enable_thinking %}<think>{% endif %}")
    assert read_capabilities(tmp_path).thinking


def test_insertion_is_told_by_the_added_tokens(tmp_path: Path) -> None:
    write_model(tmp_path, extra_specials=("<fim_prefix>", "<fim_suffix>", "<fim_middle>"))
    assert read_capabilities(tmp_path).insert


def test_abilities_of_a_gguf_model_are_told_by_its_metadata(tmp_path: Path) -> None:
    plain = write_gguf_model(tmp_path / "plain.gguf", changes={"tokenizer.chat_template": None})
    assert read_capabilities(plain) == Capabilities()
    marks = ["<fim_prefix>", "<fim_suffix>", "<fim_middle>"]
    thinks = {"tokenizer.chat_template": "{{ enable_thinking }}", "tokenizer.ggml.tokens": marks}
    able = write_gguf_model(tmp_path / "able.gguf", changes=thinks)
    assert read_capabilities(able) == Capabilities(chat=True, thinking=True, insert=True)


def test_files_that_cannot_be_read_promise_nothing(tmp_path: Path) -> None:
    assert read_capabilities(tmp_path) == Capabilities()
    (tmp_path / "tokenizer_config.json").write_text("{")
    assert read_capabilities(tmp_path) == Capabilities()


def test_capabilities_are_ollamas_words() -> None:
    assert capability_names(Capabilities()) == ["completion"]
    assert capability_names(Capabilities(embedding=True)) == ["embedding"]
    assert capability_names(Capabilities(ranking=True)) == ["rerank"]
    able = Capabilities(chat=True, thinking=True, insert=True)
    assert capability_names(able) == ["completion", "tools", "insert", "thinking"]
