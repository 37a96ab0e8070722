from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.models.gguf.config import pooling, read_config
from llmd.models.gguf.gguf_model import GgufModel
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import tiny_model
from tests.golden.models.embedding import SCORERS
from tests.golden.models.encoders import bert
from tests.golden.models.tiny import TinyModel

LLAMA = tiny_model("llama3-gqa-tied")


def config(tmp_path: Path, case: TinyModel = LLAMA, /, **changes: Any) -> dict[str, Any]:
    """Return the configuration that is read; ``changes`` are keys with two underscores for each dot."""
    named = {key.replace("__", "."): value for key, value in changes.items()}
    with GgufModel.open([write_gguf(case, tmp_path / "m.gguf", changes=named)]) as model:
        return read_config(model)


def test_says_what_config_json_says(tmp_path: Path) -> None:
    read = config(tmp_path)
    same = (
        "architectures",
        "model_type",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "rms_norm_eps",
    )
    for name in (*same, "num_attention_heads", "num_key_value_heads", "vocab_size", "tie_word_embeddings"):
        assert read[name] == LLAMA.config[name], name
    assert read["head_dim"] == 16
    assert read["rope_theta"] == 500000.0
    assert read["attention_bias"] is False


def test_an_encoder_is_a_bert(tmp_path: Path) -> None:
    case = TinyModel("bert", bert())
    read = config(tmp_path, case)
    for name in (
        "architectures",
        "hidden_size",
        "layer_norm_eps",
        "max_position_embeddings",
        "type_vocab_size",
    ):
        assert read[name] == case.config[name], name


def test_answers_end_at_the_tokens_that_the_file_names(tmp_path: Path) -> None:
    ids = {
        "tokenizer__ggml__eos_token_id": 7,
        "tokenizer__ggml__eot_token_id": 9,
        "tokenizer__ggml__bos_token_id": 1,
    }
    read = config(tmp_path, **ids)
    assert (read["eos_token_id"], read["bos_token_id"], read["pad_token_id"]) == ([7, 9], 1, None)
    assert config(tmp_path)["eos_token_id"] is None


def test_an_encoder_that_ranks_has_its_labels(tmp_path: Path) -> None:
    path = write_gguf(SCORERS[1], tmp_path / "m.gguf", pooling="rank")
    with GgufModel.open([path]) as model:
        read = read_config(model)
    assert read["architectures"] == ["BertForSequenceClassification"]
    assert read["num_labels"] == 1


def test_an_encoder_without_the_layers_that_rank_is_refused(tmp_path: Path) -> None:
    path = write_gguf(TinyModel("bert", bert()), tmp_path / "m.gguf", pooling="rank")
    with (
        GgufModel.open([path]) as model,
        pytest.raises(CheckpointError, match=r"cls.output.weight: the tensor is missing"),
    ):
        read_config(model)


@pytest.mark.parametrize(("kind", "expected"), [("mean", "mean"), ("last", "last"), (None, None)])
def test_a_model_that_pools_has_no_head(tmp_path: Path, kind: str | None, expected: str | None) -> None:
    path = write_gguf(tiny_model("gemma3"), tmp_path / "m.gguf", pooling=kind)
    with GgufModel.open([path]) as model:
        assert pooling(model.metadata) == expected
        ending = "ForCausalLM" if kind is None else "TextModel"
        assert read_config(model)["architectures"] == [f"Gemma3{ending}"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"general__architecture": "jetmoe"}, "the architecture jetmoe, a mixture of experts, yet"),
        (
            {"general__architecture": "qwen2", "qwen2__expert_count": 8},
            "the architecture qwen2, a mixture of experts, yet",
        ),
        ({"general__architecture": "mamba"}, "the architecture mamba yet; of GGUF files it runs llama, "),
        ({"general__type": "adapter"}, "holds 'adapter', not a model"),
        ({"llama__pooling_type": 4}, "llama.pooling_type is 4"),
        ({"llama__rope__scaling__type": "spiral"}, "llama.rope.scaling.type is 'spiral'"),
        ({"llama__attention__value_length": 8}, "llama.attention.value_length is 8"),
    ],
)
def test_what_is_not_computed_is_named(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UnsupportedModelError, match=complaint) as caught:
        config(tmp_path, **changes)
    assert "m.gguf" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    "key", ["llama.context_length", "llama.embedding_length", "llama.attention.layer_norm_rms_epsilon"]
)
def test_a_key_that_every_model_has_may_not_be_missing(tmp_path: Path, key: str) -> None:
    with pytest.raises(CheckpointError, match=f"the key {key} is missing"):
        config(tmp_path, **{key: None})
