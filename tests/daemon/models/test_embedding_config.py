from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmd.api import CheckpointError, UnsupportedModelError
from llmd.api.embedding import Embedding
from llmd.models.embedding_config import check_direction, default_embedding, embeds, read_embedding
from tests.golden.models.embedding import FLAGS, write_pooling


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def test_a_directory_without_modules_says_nothing(tmp_path: Path) -> None:
    assert read_embedding(tmp_path, {}) is None
    assert not embeds(tmp_path, {"architectures": ["LlamaForCausalLM"]})
    assert embeds(tmp_path, {"architectures": ["Qwen3Model"]})
    assert embeds(tmp_path, {"architectures": ["BertForMaskedLM"]})


@pytest.mark.parametrize("pooling", FLAGS)
def test_every_pooling_is_read(pooling: str, tmp_path: Path) -> None:
    write_pooling(tmp_path, [pooling])
    assert read_embedding(tmp_path, {}) == Embedding((pooling,))  # type: ignore[arg-type]
    assert embeds(tmp_path, {"architectures": None})


def test_the_newer_form_names_its_poolings(tmp_path: Path) -> None:
    write_pooling(tmp_path, [], normalizes=False)
    write(tmp_path / "1_Pooling" / "config.json", {"pooling_mode": "lasttoken"})
    assert read_embedding(tmp_path, {}) == Embedding(("last",), normalizes=False)
    write(tmp_path / "1_Pooling" / "config.json", {"pooling_mode": ["mean", "cls"]})
    assert read_embedding(tmp_path, {}) == Embedding(("mean", "cls"), normalizes=False)


def test_settings_of_the_text_are_read(tmp_path: Path) -> None:
    write_pooling(tmp_path, ["cls"])
    write(tmp_path / "sentence_bert_config.json", {"max_seq_length": 256, "do_lower_case": True, "other": 1})
    assert read_embedding(tmp_path, {}) == Embedding(("cls",), max_len=256, lower_cases=True)
    write(tmp_path / "tokenizer_config.json", {"model_max_length": 128})
    assert read_embedding(tmp_path, {}) == Embedding(("cls",), max_len=256, lower_cases=True)


def test_the_tokenizer_limits_texts_where_nothing_else_does(tmp_path: Path) -> None:
    write_pooling(tmp_path, ["cls"])
    for limit, read in ((128, 128), (10**30, 10**30), (1e30, None), (None, None), ("x", None), (0, None)):
        write(tmp_path / "tokenizer_config.json", {"model_max_length": limit})
        assert read_embedding(tmp_path, {}) == Embedding(("cls",), max_len=read)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, (False, ())),
        ({"is_matryoshka": True}, (True, ())),
        ({"matryoshka_dimensions": [256, 64]}, (True, (256, 64))),
        ({"model_type": "qwen3"}, (True, ())),
        ({"model_type": "qwen3", "is_matryoshka": False}, (False, ())),
    ],
)
def test_vectors_are_nested_where_the_makers_say_so(
    config: dict[str, Any], expected: tuple[bool, tuple[int, ...]], tmp_path: Path
) -> None:
    write_pooling(tmp_path, ["last"])
    read = read_embedding(tmp_path, config)
    assert read is not None
    assert (read.nested, read.nested_dimensions) == expected
    assert default_embedding(config, causal=True).nested is expected[0]


def test_without_files_a_causal_model_gives_its_last_row_and_another_the_mean() -> None:
    assert default_embedding({}, causal=True) == Embedding(("last",))
    assert default_embedding({}, causal=False) == Embedding(("mean",))


@pytest.mark.parametrize(
    "kinds", [[], ["Transformer"], ["Pooling", "Transformer"], ["Transformer", "Pooling", "Dense"]]
)
def test_other_modules_are_refused_by_name(kinds: list[str], tmp_path: Path) -> None:
    write(tmp_path / "modules.json", [{"type": f"sentence_transformers.models.{kind}"} for kind in kinds])
    with pytest.raises(UnsupportedModelError, match=", ".join(kinds) or "none") as caught:
        read_embedding(tmp_path, {})
    assert caught.value.hint


def test_a_model_that_ranks_embeds_nothing(tmp_path: Path) -> None:
    write(tmp_path / "modules.json", [{"type": "a.Transformer"}, {"type": "a.LogitScore"}])
    assert read_embedding(tmp_path, {}) is None
    assert not embeds(tmp_path, {"architectures": ["Qwen3ForCausalLM"]})


def test_a_transformer_in_a_folder_of_its_own_is_refused(tmp_path: Path) -> None:
    modules = [{"type": "a.Transformer", "path": "0_Transformer"}, {"type": "a.Pooling", "path": "1_Pooling"}]
    write(tmp_path / "modules.json", modules)
    with pytest.raises(UnsupportedModelError, match="0_Transformer"):
        read_embedding(tmp_path, {})


def test_an_unknown_pooling_is_refused_by_name(tmp_path: Path) -> None:
    write_pooling(tmp_path, [])
    write(tmp_path / "1_Pooling" / "config.json", {"pooling_mode": "attention"})
    with pytest.raises(UnsupportedModelError, match="'attention'"):
        read_embedding(tmp_path, {})
    write(tmp_path / "1_Pooling" / "config.json", {"pooling_mode": ["mean", {}]})
    with pytest.raises(UnsupportedModelError, match=r"\{\}"):
        read_embedding(tmp_path, {})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("modules.json", "{"),
        ("modules.json", "{}"),
        ("modules.json", [{"path": ""}]),
        ("modules.json", [{"type": "a.Transformer"}, {"type": "a.Pooling", "path": "../elsewhere"}]),
        ("modules.json", [{"type": "a.Transformer"}, {"type": "a.Pooling", "path": "/etc"}]),
        ("modules.json", "[" * 100_000),
        ("1_Pooling/config.json", "[]"),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": False}),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": 1}),
        ("1_Pooling/config.json", {"pooling_mode": 3}),
        ("1_Pooling/config.json", {"pooling_mode": []}),
        ("tokenizer_config.json", "{"),
        ("sentence_bert_config.json", {"max_seq_length": "x"}),
        ("sentence_bert_config.json", {"max_seq_length": 0}),
        ("sentence_bert_config.json", {"do_lower_case": 7}),
    ],
)
def test_damaged_files_are_refused_by_name(name: str, content: Any, tmp_path: Path) -> None:
    write_pooling(tmp_path, ["mean"])
    write(tmp_path / name, content)
    with pytest.raises(CheckpointError) as caught:
        read_embedding(tmp_path, {})
    assert caught.value.file == str(tmp_path / name)
    assert caught.value.hint


def test_prompts_are_known_by_name_and_one_may_stand_before_every_text(tmp_path: Path) -> None:
    write_pooling(tmp_path, ["last"])
    prompts = {"query": "Find: ", "document": ""}
    path = tmp_path / "config_sentence_transformers.json"
    write(path, {"prompts": prompts, "default_prompt_name": None, "similarity_fn_name": "cosine"})
    assert read_embedding(tmp_path, {}) == Embedding(("last",), prompts=prompts)
    write(path, {"prompts": prompts, "default_prompt_name": "query"})
    assert read_embedding(tmp_path, {}) == Embedding(("last",), prompts=prompts, default_prompt="Find: ")
    write(path, {"prompts": prompts, "default_prompt_name": "other"})
    with pytest.raises(CheckpointError, match="'other'"):
        read_embedding(tmp_path, {})


def test_prompts_outside_the_pooling_are_not_used(tmp_path: Path) -> None:
    write_pooling(tmp_path, [])
    write(tmp_path / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True, "include_prompt": False})
    path = tmp_path / "config_sentence_transformers.json"
    write(path, {"prompts": {"query": "Find: "}})
    assert read_embedding(tmp_path, {}) == Embedding(("mean",))
    write(path, {"prompts": {"query": "Find: "}, "default_prompt_name": "query"})
    with pytest.raises(UnsupportedModelError, match="'Find: '"):
        read_embedding(tmp_path, {})


@pytest.mark.parametrize(("field", "value"), [("is_causal", False), ("use_bidirectional_attention", True)])
def test_a_decoder_that_sees_both_directions_is_refused(field: str, value: object) -> None:
    check_direction({field: not value}, Path("m/config.json"))
    check_direction({}, Path("m/config.json"))
    with pytest.raises(UnsupportedModelError, match=f"m/config.json: {field} is") as caught:
        check_direction({field: value}, Path("m/config.json"))
    assert caught.value.hint
