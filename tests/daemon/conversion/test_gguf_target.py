"""General keys of written GGUF files. tests/golden/test_conversion.py compares others with llama.cpp's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from llmd.api import Architecture
from llmd.models.gguf.gguf_file import read_gguf_metadata
from tests.golden.converted import converted


@pytest.mark.parametrize(
    ("quant", "number", "version"), [(None, 0, None), ("bf16", 32, None), ("q8_0", 7, 2), ("q4_0", 2, 2)]
)
def test_a_file_states_its_name_and_the_type_of_most_matrices(
    quant: str | None,
    number: int,
    version: int | None,
    tmp_path: Path,
    model: Path,
    architectures: Mapping[str, Architecture],
) -> None:
    converted(model, tmp_path / "m.gguf", architectures, quant=quant)
    stated = read_gguf_metadata(tmp_path / "m.gguf")
    assert stated["general.architecture"] == "llama"
    assert stated["general.name"] == "model"
    assert stated["general.file_type"] == number
    assert stated.get("general.quantization_version") == version
