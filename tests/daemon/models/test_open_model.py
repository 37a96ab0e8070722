from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest

from llmd.api import Architecture, CheckpointError, ModelError, NotFoundError, UnsupportedModelError
from llmd.api.embedding import Embedding
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.models.open_model import find_architecture, open_model
from tests.corrupt import small_model
from tests.corrupt.untouchable import map_untouchable
from tests.golden.models.embedding import SCORERS, write_pooling
from tests.serving.encoder import write_encoder

Architectures = dict[str, Architecture]


def test_opens_a_model_without_reading_a_weight(model_directory: Path, architectures: Architectures) -> None:
    opened = open_model(model_directory, architectures, mapper=map_untouchable)
    with opened.checkpoint:
        assert opened.plan.context_len == small_model.CONTEXT_LEN
        assert opened.config["hidden_size"] == small_model.HIDDEN
        assert opened.notices == ()
        with pytest.raises(TypeError):
            opened.checkpoint.view("model.norm.weight")


def test_a_model_saved_without_its_head_is_opened_by_its_own_names(model_directory: Path) -> None:
    builtin = {name: known for known in llmd_architectures() for name in known.names}
    small_model.write_config(model_directory, architectures=["LlamaModel"])
    tensors = {name.removeprefix("model."): array for name, array in small_model.tensors().items()}
    del tensors["lm_head.weight"]
    small_model.write_weights(model_directory, tensors)
    opened = open_model(model_directory, builtin)
    with opened.checkpoint:
        assert not opened.plan.has_head
        assert opened.embedding == Embedding(("last",))
        assert opened.notices == ()


def test_files_of_sentence_transformers_make_a_model_one_that_embeds(
    model_directory: Path, architectures: Architectures
) -> None:
    write_pooling(model_directory, ["last"])
    write_text(model_directory, max_seq_length=32)
    opened = open_model(model_directory, architectures)
    with opened.checkpoint:
        assert opened.embedding == Embedding(("last",), max_len=32)
        assert not opened.plan.has_head
        assert (opened.plan.context_len, opened.plan.max_context_len) == (32, 32)
    write_text(model_directory, max_seq_length=1 << 20)
    with (opened := open_model(model_directory, architectures, 16)).checkpoint:
        assert (opened.plan.context_len, opened.plan.max_context_len) == (16, small_model.CONTEXT_LEN)


def test_a_decoder_of_both_directions_is_refused_where_it_embeds(model_directory: Path) -> None:
    builtin = {name: known for known in llmd_architectures() for name in known.names}
    small_model.write_config(model_directory, is_causal=False)
    open_model(model_directory, builtin).checkpoint.close()
    write_pooling(model_directory, ["last"])
    with pytest.raises(UnsupportedModelError, match="is_causal is false"):
        open_model(model_directory, builtin)


def write_text(directory: Path, **settings: Any) -> None:
    (directory / "sentence_bert_config.json").write_text(json.dumps(settings))


def test_the_plan_is_made_for_the_wanted_context(model_directory: Path, architectures: Architectures) -> None:
    opened = open_model(model_directory, architectures, 17)
    with opened.checkpoint:
        assert opened.plan.context_len == 17


def test_notices_of_checkpoint_and_plan_come_together(
    model_directory: Path, architectures: Architectures
) -> None:
    small_model.write_sharded(model_directory)
    small_model.write_config(model_directory, tie_word_embeddings=True)
    index = json.loads((model_directory / small_model.INDEX).read_text())
    (model_directory / small_model.INDEX).write_text(json.dumps(index | {"metadata": {"total_size": 1}}))
    opened = open_model(model_directory, architectures)
    with opened.checkpoint:
        assert len(opened.notices) == 2


@pytest.mark.parametrize("field", ["hidden_size", "hidden_act"])
def test_what_an_architecture_refuses_is_named_with_its_file(field: str, model_directory: Path) -> None:
    builtin = {name: known for known in llmd_architectures() for name in known.names}
    small_model.write_config(model_directory, **{field: "mish"})
    with pytest.raises(ModelError) as caught:
        open_model(model_directory, builtin)
    assert caught.value.message.startswith(f"{model_directory}/config.json: {field} is 'mish'")
    assert caught.value.hint


def test_files_are_closed_when_plan_and_checkpoint_disagree(
    model_directory: Path, architectures: Architectures
) -> None:
    small_model.write_config(model_directory, hidden_size=8)
    with pytest.raises(CheckpointError, match="has shape"):
        open_model(model_directory, architectures)
    gc.collect()  # an open file would warn here


def test_a_model_type_is_enough(architectures: Architectures) -> None:
    found = find_architecture({"model_type": "llama"}, architectures, file="config.json")
    assert found is architectures["llama"]


def test_an_unknown_class_is_not_run_as_its_type(architectures: Architectures) -> None:
    config = {"architectures": ["LlamaForSequenceClassification"], "model_type": "llama"}
    with pytest.raises(UnsupportedModelError, match="nearest known are LlamaForCausalLM, llama"):
        find_architecture(config, architectures, file="config.json")


@pytest.mark.parametrize("config", [{}, {"architectures": None}, {"architectures": []}, {"model_type": None}])
def test_a_configuration_must_name_an_architecture(
    config: dict[str, Any], architectures: Architectures
) -> None:
    with pytest.raises(CheckpointError, match="names neither architectures nor model_type") as caught:
        find_architecture(config, architectures, file="m/config.json")
    assert caught.value.file == "m/config.json"


@pytest.mark.parametrize(
    "quantization", [{"quant_method": "gptq", "bits": 4}, {}, {"quant_method": "fp8", "fmt": "e5m2"}]
)
def test_a_quantised_checkpoint_is_refused_before_its_tensors_are_missed(
    model_directory: Path, architectures: Architectures, quantization: Any
) -> None:
    small_model.write_config(model_directory, quantization_config=quantization)
    with pytest.raises(UnsupportedModelError, match="the weights are quantised"):
        open_model(model_directory, architectures)


def test_a_missing_directory_is_not_found(tmp_path: Path, architectures: Architectures) -> None:
    with pytest.raises(NotFoundError):
        open_model(tmp_path / "absent", architectures)


def test_a_model_with_a_classifier_scores_whatever_else_its_files_say(tmp_path: Path) -> None:
    builtin = {name: known for known in llmd_architectures() for name in known.names}
    directory = write_encoder(SCORERS[0], tmp_path / "scores")
    write_pooling(directory, ["mean"])
    opened = open_model(directory, builtin)
    with opened.checkpoint:
        assert opened.plan.parts[-1].kind == "score"
        assert opened.embedding == Embedding(("cls",), normalizes=False, score="sigmoid")
