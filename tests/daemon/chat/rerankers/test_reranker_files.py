from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import CheckpointError, ModelError, RequestError
from llmd.chat.model_text import ModelText, load_model_text
from llmd.chat.rerankers.reranker_files import ranks
from llmd.chat.templates.renderer import TemplateRenderer
from tests.golden.checkpoint import write_checkpoint
from tests.serving.model import write_model
from tests.serving.reranker import CASE, FALSE_ID, INSTRUCTION, TRUE_ID, write_reranker


def load(directory: Path) -> ModelText:
    with TemplateRenderer() as renderer:
        return load_model_text(directory, renderer)


def change(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_files_of_sentence_transformers_say_how_a_model_is_asked(tmp_path: Path) -> None:
    reranker = load(write_reranker(tmp_path)).as_reranker()
    assert ranks(tmp_path)
    assert (reranker.true_id, reranker.false_id, reranker.instruction) == (TRUE_ID, FALSE_ID, INSTRUCTION)
    assert reranker.add_generation_prompt
    assert reranker.template.variables["mark"] == "<think>"


def test_files_that_may_be_missing_are_not_missed(tmp_path: Path) -> None:
    write_reranker(tmp_path)
    for name in ("sentence_bert_config.json", "config_sentence_transformers.json"):
        (tmp_path / name).unlink()
    reranker = load(tmp_path).as_reranker()
    assert (reranker.instruction, reranker.add_generation_prompt) == ("", False)
    assert "mark" not in reranker.template.variables


def test_other_models_refuse_to_rank(tmp_path: Path) -> None:
    text = load(write_model(tmp_path))
    assert not ranks(tmp_path)
    with pytest.raises(RequestError, match="does not rank documents") as refused:
        text.encode_pair("q", "d")
    assert refused.value.param == "model"


def test_a_score_of_one_bare_logit_is_refused(tmp_path: Path) -> None:
    text = load(write_reranker(tmp_path, false_token_id=None))
    with pytest.raises(RequestError, match="no false_token_id"):
        text.encode_pair("q", "d")


def test_a_template_that_reads_parts_is_refused(tmp_path: Path) -> None:
    write_reranker(tmp_path)
    change(tmp_path / "sentence_bert_config.json", modality_config={"message": {"format": "structured"}})
    with pytest.raises(RequestError, match="list of parts"):
        load(tmp_path).encode_pair("q", "d")


def test_a_reranker_without_template_says_that_it_lacks_one(tmp_path: Path) -> None:
    write_reranker(tmp_path)
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(RequestError, match="has no chat template"):
        load(tmp_path).encode_pair("q", "d")


def test_tokens_outside_the_vocabulary_are_damage(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="names the tokens"):
        load(write_reranker(tmp_path, true_token_id=9693))


@pytest.mark.parametrize("content", ["{", "[]", '{"true_token_id": "yes"}'])
def test_a_damaged_score_is_told_with_its_file(tmp_path: Path, content: str) -> None:
    write_reranker(tmp_path)
    (tmp_path / "1_LogitScore" / "config.json").write_text(content)
    with pytest.raises(ModelError, match="1_LogitScore"):
        load(tmp_path)


def test_a_module_outside_of_the_model_is_not_read(tmp_path: Path) -> None:
    write_reranker(tmp_path / "model")
    modules = [{"type": "x.Transformer"}, {"type": "x.LogitScore", "path": "../other"}]
    (tmp_path / "model" / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(CheckpointError, match="outside"):
        load(tmp_path / "model")


def test_an_unmarked_qwen3_reranker_is_known_by_its_name(tmp_path: Path) -> None:
    for name, known in (("Qwen3-Reranker-0.6B", True), ("my_qwen3_reranker", True), ("Qwen3-0.6B", False)):
        assert ranks(write_checkpoint(CASE, tmp_path / name)) is known
    assert not ranks(write_model(tmp_path / "llama-qwen3-reranker"))
