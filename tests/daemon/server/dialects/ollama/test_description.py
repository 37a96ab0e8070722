from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmd.registry.derived import DerivedModel
from llmd.registry.stored_model import describe
from llmd.server.dialects.ollama.description import describe_model, digest, human_count
from tests.serving.model import CONTEXT_LEN


def test_info_has_the_names_that_gguf_files_use(model_directory: Path) -> None:
    info = describe_model(describe("tiny", model_directory)).info()
    assert info["general.architecture"] == "llama"
    assert info["llama.context_length"] == CONTEXT_LEN
    config = json.loads((model_directory / "config.json").read_text())
    assert info["llama.block_count"] == config["num_hidden_layers"]
    assert info["llama.embedding_length"] == config["hidden_size"]
    assert info["general.parameter_count"] > 0


def test_numbers_of_a_model_for_images_are_those_about_text(tmp_path: Path) -> None:
    config = {
        "model_type": "gemma3",
        "architectures": ["Gemma3ForConditionalGeneration"],
        "text_config": {"model_type": "gemma3_text", "hidden_size": 64, "max_position_embeddings": 8},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    description = describe_model(describe("images", tmp_path))
    assert description.family == "gemma3_text"
    assert description.details()["embedding_length"] == 64


def test_model_without_a_readable_configuration_has_the_same_fields(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    details = describe_model(describe("broken", tmp_path)).details()
    assert (details["family"], details["families"]) == ("unknown", ["unknown"])


def test_digest_changes_with_the_files(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    first = digest(tmp_path)
    assert len(bytes.fromhex(first)) == 32
    assert digest(tmp_path) == first
    assert digest(tmp_path, DerivedModel("base", 5.0)) == first
    changed = digest(tmp_path, DerivedModel("base", 5.0, system="Be brief."))
    assert changed != first
    assert digest(tmp_path, DerivedModel("base", 6.0, system="Be brief.")) == changed
    (tmp_path / "config.json").write_text("{ }")
    assert digest(tmp_path) != first


@pytest.mark.parametrize(
    ("number", "text"),
    [(999, "999"), (4_300, "4.3K"), (137_000_000, "137.0M"), (8_030_000_000, "8.0B"), (10**12, "1.0T")],
)
def test_numbers_of_parameters_are_written_as_models_are_called(number: int, text: str) -> None:
    assert human_count(number) == text
