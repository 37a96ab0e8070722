from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmd.api.errors import ModelError
from llmd.chat.generation_defaults import GenerationDefaults, read_generation_defaults
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import tiny_model


def read(directory: Path, content: object) -> GenerationDefaults:
    (directory / "generation_config.json").write_text(json.dumps(content))
    return read_generation_defaults(directory)


def test_absent_file_sets_nothing(tmp_path: Path) -> None:
    assert read_generation_defaults(tmp_path) == GenerationDefaults()


def test_a_link_that_leads_nowhere_is_not_an_absent_file(tmp_path: Path) -> None:
    (tmp_path / "generation_config.json").symlink_to("absent")
    with pytest.raises(ModelError, match="the file is missing"):
        read_generation_defaults(tmp_path)


def test_values_are_taken_and_others_ignored(tmp_path: Path) -> None:
    values = {
        "temperature": 0.6,
        "top_p": 0.9,
        "top_k": 20,
        "min_p": 0.05,
        "repetition_penalty": 1.1,
        "typical_p": 0.9,
        "do_sample": True,
    }
    defaults = read(
        tmp_path, {**values, "max_new_tokens": 2048, "eos_token_id": [2, 7], "transformers_version": "4"}
    )
    assert defaults == GenerationDefaults(0.6, 0.9, 20, 0.05, 1.1, 0.9, (2, 7))


def test_a_gguf_file_states_them_in_its_keys(tmp_path: Path) -> None:
    stated = {"temp": 0.6, "top_p": 0.9, "top_k": 20, "min_p": 0.05, "penalty_repeat": 1.1}
    keys = {f"general.sampling.{name}": value for name, value in stated.items()}
    path = write_gguf(tiny_model("llama2-mha"), tmp_path / "m.gguf", changes=keys)
    for given in (path, tmp_path):
        assert read_generation_defaults(given) == GenerationDefaults(0.6, 0.9, 20, 0.05, 1.1)
    write_gguf(tiny_model("llama2-mha"), path, changes={"general.sampling.top_p": 2.0})
    with pytest.raises(ModelError, match=r"m.gguf does not have the expected form: .* at `.*top_p`"):
        read_generation_defaults(path)
    write_gguf(tiny_model("llama2-mha"), path)
    assert read_generation_defaults(path) == GenerationDefaults()


def test_model_that_does_not_sample_is_greedy(tmp_path: Path) -> None:
    assert read(tmp_path, {"do_sample": False, "temperature": 0.6}).temperature == 0.0
    assert read(tmp_path, {"temperature": 0.6}).temperature == 0.6


def test_single_end_token_is_a_list_of_one(tmp_path: Path) -> None:
    assert read(tmp_path, {"eos_token_id": 2}).eos_ids == (2,)
    assert read(tmp_path, {"eos_token_id": None}).eos_ids == ()


@pytest.mark.parametrize(
    "content",
    [
        {"temperature": -1},
        {"temperature": "hot"},
        {"top_p": 1.5},
        {"top_k": -1},
        {"min_p": 2},
        {"typical_p": 0},
        {"eos_token_id": [-1]},
        {"eos_token_id": "2"},
        [],
    ],
)
def test_value_out_of_range_is_refused_by_file(content: object, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"generation_config\.json"):
        read(tmp_path, content)
