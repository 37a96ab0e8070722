"""The format of each tensor of a converted model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmd.api import Architecture
from llmd.api.errors import ConfigError
from llmd.conversion.formats import Formats, formats_of_directory, formats_of_gguf
from llmd.conversion.output_plan import open_source
from llmd.conversion.tensor_map import map_tensors
from tests.golden.checkpoint import write_checkpoint, write_safetensors
from tests.golden.converted import converted
from tests.golden.models.catalog import tiny_model
from tests.golden.tensors import draw_tensors

Architectures = Mapping[str, Architecture]


@pytest.fixture
def bf16(tmp_path: Path) -> Path:
    return write_checkpoint(tiny_model("llama32-tied"), tmp_path / "bf16")


def choose(path: Path, architectures: Architectures, quant: str | None, **options: Any) -> Formats:
    """Return the formats in a GGUF file, or in a directory if ``narrows`` is given."""
    source = open_source(path, architectures)
    with source.model.checkpoint as checkpoint:
        tensor_map = map_tensors(source.model.plan, source.plan)
        of = formats_of_directory if options else formats_of_gguf
        return of(checkpoint, tensor_map, quant, **options)


def counts(formats: Formats) -> dict[str, int]:
    found = list(formats.by_name.values())
    return {fmt: found.count(fmt) for fmt in dict.fromkeys(found)}


def test_in_a_gguf_file_matrices_stay_and_the_rest_is_f32(bf16: Path, architectures: Architectures) -> None:
    found = choose(bf16, architectures, None)
    assert counts(found) == {"bf16": 15, "f32": 5}
    assert found.by_name["model.norm.weight"] == "f32"
    assert counts(choose(bf16, architectures, "f16")) == {"f16": 15, "f32": 5}


def test_embedding_and_head_keep_more_bits_than_other_matrices(
    bf16: Path, tmp_path: Path, architectures: Architectures
) -> None:
    found = choose(bf16, architectures, "q4_0")
    assert counts(found) == {"q8_0": 1, "f32": 5, "q4_0": 14}
    assert found.by_name["model.embed_tokens.weight"] == "q8_0"
    untied = write_checkpoint(tiny_model("llama2-mha"), tmp_path / "untied")
    assert choose(untied, architectures, "q4_0").by_name["lm_head.weight"] == "q8_0"


def test_rows_that_are_no_whole_blocks_stay_f16_and_that_is_said(
    tmp_path: Path, architectures: Architectures
) -> None:
    path = write_checkpoint(tiny_model("smollm"), tmp_path / "odd")
    found = choose(path, architectures, "q8_0")
    assert set(found.by_name.values()) == {"f16", "f32"}
    assert found.notices[0].startswith(
        "15 matrices are written as f16, because their rows are not whole blocks of 32: "
    )


def test_in_a_directory_formats_stay_unless_one_is_asked_for(
    bf16: Path, architectures: Architectures
) -> None:
    assert counts(choose(bf16, architectures, None, narrows=False)) == {"bf16": 20}
    assert counts(choose(bf16, architectures, "f32", narrows=False)) == {"f32": 20}


def test_what_a_gguf_file_has_widened_is_narrowed_where_that_loses_nothing(
    bf16: Path, tmp_path: Path, architectures: Architectures
) -> None:
    path = tmp_path / "m.gguf"
    converted(bf16, path, architectures)
    assert counts(choose(path, architectures, None, narrows=True)) == {"bf16": 20}
    mixed = write_checkpoint(tiny_model("llama-f16"), tmp_path / "f16")
    converted(mixed, tmp_path / "f.gguf", architectures, quant="bf16")
    narrowed = choose(tmp_path / "f.gguf", architectures, None, narrows=True)
    assert counts(narrowed) == {"bf16": 23, "f32": 7}


def test_blocks_become_f16_in_a_directory_and_that_is_said(
    bf16: Path, tmp_path: Path, architectures: Architectures
) -> None:
    converted(bf16, tmp_path / "m.gguf", architectures, quant="q4_0")
    found = choose(tmp_path / "m.gguf", architectures, None, narrows=True)
    assert set(found.by_name.values()) <= {"f16", "f32"}
    assert "stored as q4_0" in found.notices[0]
    assert "become f16" in found.notices[0]
    assert set(choose(tmp_path / "m.gguf", architectures, "bf16", narrows=True).by_name.values()) == {"bf16"}


def test_blocks_stay_in_another_gguf_file_and_are_not_quantised_again(
    bf16: Path, tmp_path: Path, architectures: Architectures
) -> None:
    converted(bf16, tmp_path / "m.gguf", architectures, quant="q5_1")
    assert counts(choose(tmp_path / "m.gguf", architectures, None)) == {"q8_0": 1, "f32": 5, "q5_1": 14}
    with pytest.raises(ConfigError, match="quantised already, as q5_1"):
        choose(tmp_path / "m.gguf", architectures, "q8_0")


def test_tables_have_the_integers_that_each_form_needs(tmp_path: Path, architectures: Architectures) -> None:
    case, table = tiny_model("deepseek-v4-some-experts"), "layers.0.ffn.gate.tid2eid"
    source = write_checkpoint(case, tmp_path / "model")
    for quant in (None, "f32", "q8_0"):
        assert choose(source, architectures, quant).by_name[table] == "i32"
    for quant in (None, "f32"):
        assert choose(source, architectures, quant, narrows=False).by_name[table] == "i64"
    tensors = dict(draw_tensors(case))
    narrow = {name: stored.astype(np.int32) for name, stored in tensors.items() if name.endswith("tid2eid")}
    write_safetensors(source / "model.safetensors", tensors | narrow, {})
    assert choose(source, architectures, None, narrows=False).by_name[table] == "i32"
    converted(source, tmp_path / "m.gguf", architectures)
    assert choose(tmp_path / "m.gguf", architectures, None, narrows=True).by_name[table] == "i64"


def test_matrices_that_mix_streams_are_never_rounded(tmp_path: Path, architectures: Architectures) -> None:
    source = write_checkpoint(tiny_model("deepseek-v4-some-experts"), tmp_path / "model")
    formats = choose(source, architectures, "q4_0").by_name
    mixing = {name for name in formats if name.endswith("_fn")}
    assert len(mixing) == 2 * 4 + 1
    assert {formats[name] for name in mixing} == {"f32"}


@pytest.mark.parametrize(
    ("quant", "options", "hint"),
    [
        ("q4_k", {}, "f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0; for K-quants"),
        ("q4", {}, "choose one of"),
        ("q8_0", {"narrows": False}, "TARGET that ends in .gguf"),
        ("int8", {"narrows": True}, "--quant q4"),
    ],
)
def test_other_formats_are_refused_with_those_that_there_are(
    quant: str, options: dict[str, Any], hint: str, bf16: Path, architectures: Architectures
) -> None:
    with pytest.raises(ConfigError, match=f"--quant {quant}: ") as refused:
        choose(bf16, architectures, quant, **options)
    assert hint in refused.value.hint
