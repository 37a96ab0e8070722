from __future__ import annotations

from pathlib import Path

from llmd.chat.abilities import Abilities, capabilities, read_abilities
from tests.golden.models.embedding import SCORERS
from tests.serving.encoder import write_encoder
from tests.serving.gguf_model import write_gguf_model
from tests.serving.model import write_embedding_model, write_model
from tests.serving.reranker import write_reranker


def test_model_with_a_template_chats(tmp_path: Path) -> None:
    assert read_abilities(write_model(tmp_path)) == Abilities(chat=True)


def test_model_that_embeds_does_nothing_else(tmp_path: Path) -> None:
    assert read_abilities(write_embedding_model(tmp_path)) == Abilities(embedding=True)


def test_model_that_ranks_is_asked_nothing_else(tmp_path: Path) -> None:
    assert read_abilities(write_reranker(tmp_path / "generates")) == Abilities(ranking=True)
    assert read_abilities(write_encoder(SCORERS[0], tmp_path / "scores")) == Abilities(ranking=True)


def test_reasoning_is_told_by_the_template(tmp_path: Path) -> None:
    write_model(tmp_path)
    (tmp_path / "chat_template.jinja").write_text("{% if enable_thinking %}<think>{% endif %}")
    assert read_abilities(tmp_path).thinking


def test_insertion_is_told_by_the_added_tokens(tmp_path: Path) -> None:
    write_model(tmp_path, extra_specials=("<fim_prefix>", "<fim_suffix>", "<fim_middle>"))
    assert read_abilities(tmp_path).insert


def test_abilities_of_a_gguf_model_are_told_by_its_metadata(tmp_path: Path) -> None:
    plain = write_gguf_model(tmp_path / "plain.gguf", changes={"tokenizer.chat_template": None})
    assert read_abilities(plain) == Abilities()
    marks = ["<fim_prefix>", "<fim_suffix>", "<fim_middle>"]
    thinks = {"tokenizer.chat_template": "{{ enable_thinking }}", "tokenizer.ggml.tokens": marks}
    able = write_gguf_model(tmp_path / "able.gguf", changes=thinks)
    assert read_abilities(able) == Abilities(chat=True, thinking=True, insert=True)


def test_files_that_cannot_be_read_promise_nothing(tmp_path: Path) -> None:
    assert read_abilities(tmp_path) == Abilities()
    (tmp_path / "tokenizer_config.json").write_text("{")
    assert read_abilities(tmp_path) == Abilities()


def test_capabilities_are_ollamas_words() -> None:
    assert capabilities(Abilities()) == ["completion"]
    assert capabilities(Abilities(embedding=True)) == ["embedding"]
    assert capabilities(Abilities(ranking=True)) == ["rerank"]
    able = Abilities(chat=True, thinking=True, insert=True)
    assert capabilities(able) == ["completion", "tools", "insert", "thinking"]
