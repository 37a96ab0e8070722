"""Directories of PEFT: the modules of their adapters, and what else is in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.models.adapters.adapter import Adapter, AsTrained
from llmd.models.adapters.peft_adapter import open_peft
from tests.golden.checkpoint import write_safetensors
from tests.serving.adapters import write_adapter
from tests.serving.model import write_model

Q = "base_model.model.model.layers.0.self_attn.q_proj"


@contextmanager
def opened(folder: Path, *names: str) -> Iterator[Adapter]:
    write_adapter(folder / "adapter", write_model(folder / "model"))
    tensors = {name: np.zeros((2, 2), np.float32) for name in names}
    write_safetensors(folder / "adapter" / "adapter_model.safetensors", tensors, {})
    with closing(open_peft("sql", folder / "adapter", AsTrained())) as adapter:
        yield adapter


def test_names_modules_as_the_model_does(tmp_path: Path) -> None:
    with opened(tmp_path, f"{Q}.lora_A.weight", f"{Q}.lora_B.weight") as adapter:
        assert list(adapter.changes) == ["model.layers.0.self_attn.q_proj"]
        assert list(adapter.header.entries) == [f"sql: {Q}.lora_A.weight", f"sql: {Q}.lora_B.weight"]
        assert adapter.view(f"sql: {Q}.lora_B.weight").shape == (2, 2)


def test_a_matrix_without_its_other_is_named(tmp_path: Path) -> None:
    missing = pytest.raises(CheckpointError, match=r"q_proj\.lora_B\.weight: the tensor is missing")
    with missing, opened(tmp_path, f"{Q}.lora_A.weight"):
        pass


@pytest.mark.parametrize(
    "name",
    [
        "base_model.model.lm_head.weight",
        f"{Q}.lora_magnitude_vector.weight",
        "base_model.model.model.embed_tokens.lora_embedding_A",
    ],
)
def test_other_tensors_are_refused_by_name(tmp_path: Path, name: str) -> None:
    refused = pytest.raises(UnsupportedModelError, match=name.replace(".", r"\."))
    with refused, opened(tmp_path, f"{Q}.lora_A.weight", f"{Q}.lora_B.weight", name):
        pass


def test_a_file_without_tensors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="has no tensors"), opened(tmp_path):
        pass


def test_weights_must_be_safetensors(tmp_path: Path) -> None:
    folder = write_adapter(tmp_path / "adapter", write_model(tmp_path / "model"))
    (folder / "adapter_model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"adapter_model\.safetensors: there is no such file"):
        open_peft("sql", folder, AsTrained())
