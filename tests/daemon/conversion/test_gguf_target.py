"""General keys of written GGUF files. tests/golden/test_conversion.py compares others with llama.cpp's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

from llmd.api import Architecture
from llmd.builtin.reference.device import ReferenceDevice
from llmd.models.gguf.gguf_file import read_gguf_metadata
from tests.golden.checkpoint import write_checkpoint
from tests.golden.converted import converted
from tests.golden.engines import engine
from tests.golden.expected import nmse
from tests.golden.models.catalog import tiny_model


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


@pytest.mark.parametrize("of_head", [1.7, 0.8])
def test_a_tied_head_is_written_apart_if_multipliers_of_both_ends_differ(
    of_head: float, tmp_path: Path, architectures: Mapping[str, Architecture]
) -> None:
    tied = tiny_model("falcon-h1-tied")
    factors = {"embedding_multiplier": 1.7, "lm_head_multiplier": of_head}
    case = replace(tied, config={**tied.config, **factors})
    source = write_checkpoint(case, tmp_path / "model")
    converted(source, tmp_path / "m.gguf", architectures)
    names = {tensor.name for tensor in gguf.GGUFReader(tmp_path / "m.gguf").tensors}
    assert ("output.weight" in names) == (of_head != factors["embedding_multiplier"])
    rows = []
    for path in (source, tmp_path / "m.gguf"):
        with engine(case, path, architectures, lambda _name: ReferenceDevice()) as core:
            rows.append(core.forward(np.array(case.prompt, np.int32)))
    assert nmse(rows[1], rows[0]) < 1e-10
