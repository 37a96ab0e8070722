from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest

from llmd.api import OWN_FORMATS, ConfigError, DeviceInfo, PluginError, TensorRef
from llmd.api.ops import FACTOR_OPS, TABLE_OPS
from llmd.models.checkpoint import Checkpoint
from llmd.models.model_source import find_source
from llmd.models.shards import find_shards
from llmd.models.weight_formats import (
    conversion_notices,
    format_policy,
    nearest_format,
    quantized_format,
    stored_integers,
)
from tests.golden.checkpoint import Tensors, write_safetensors
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import tiny_model


def device(*formats: str, integer_ops: tuple[str, ...] = FACTOR_OPS) -> DeviceInfo:
    return DeviceInfo("made", "toy", 1, 1, formats, ("f32",), (), integer_ops=integer_ops)


ALL = ("f32", "f16", "bf16", "q8")
MATRIX = TensorRef("matrix", (4, 4))
VECTOR = TensorRef("vector", (4,))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Iterator[Checkpoint]:
    tensors: Tensors = {"matrix": np.zeros((4, 4), np.uint16), "vector": np.zeros(4, np.float32)}
    write_safetensors(tmp_path / "model.safetensors", tensors, {})
    with Checkpoint.open(find_shards(tmp_path)) as opened:
        yield opened


def test_weights_stay_as_they_are_stored(checkpoint: Checkpoint) -> None:
    format_of = format_policy(checkpoint, device(*ALL), None)
    assert format_of("linear", MATRIX) == "bf16"
    assert format_of("norm", VECTOR) == "f32"


@pytest.mark.parametrize(
    ("op_kind", "ref", "expected"),
    [
        ("linear", MATRIX, "q8"),
        ("head", MATRIX, "q8"),
        ("embed", MATRIX, "bf16"),
        ("linear", VECTOR, "f32"),
        ("norm", VECTOR, "f32"),
    ],
)
def test_only_matrices_that_are_multiplied_are_quantised(
    checkpoint: Checkpoint, op_kind: str, ref: TensorRef, expected: str
) -> None:
    assert format_policy(checkpoint, device(*ALL), "q8")(op_kind, ref) == expected


def test_a_table_of_a_plain_model_is_never_quantised(checkpoint: Checkpoint) -> None:
    looks_up = device(*ALL, integer_ops=(*FACTOR_OPS, *TABLE_OPS))
    assert format_policy(checkpoint, looks_up, "q8")("embed", MATRIX) == "bf16"


def test_a_format_that_the_device_lacks_is_replaced_and_said(checkpoint: Checkpoint) -> None:
    assert format_policy(checkpoint, device("f32", "f16"), "q8")("linear", MATRIX) == "f32"
    notices = conversion_notices(checkpoint, ("f32", "f16"), "q8", device="slow")
    assert len(notices) == 2
    assert "slow does not compute with q8" in notices[0]
    assert "bf16: weights are converted to f32" in notices[1]


@pytest.mark.parametrize(
    ("quant", "row_len", "device_formats", "expected"),
    [
        ("q4", 512, OWN_FORMATS, "q4"),
        ("q4", 320, OWN_FORMATS, "q4_g32"),
        ("q2", 40, OWN_FORMATS, "q2_g32"),
        ("q3_g64_sym", 40, OWN_FORMATS, "q3_g64_sym"),
        ("q4", 512, ("f32", "q8"), "q8"),
        ("q3", 320, ("f32", "q8", "q4"), "q8"),
        ("q3", 512, ("f32", "q8", "q4"), "q4"),
        ("q4", 512, ("f32", "q3", "q4_k"), None),
    ],
)
def test_a_matrix_gets_the_nearest_of_our_formats_that_suits_it(
    quant: str, row_len: int, device_formats: tuple[str, ...], expected: str | None
) -> None:
    assert quantized_format(quant, device_formats, row_len) == expected


def test_a_quantised_format_that_the_device_lacks_is_replaced_and_said(checkpoint: Checkpoint) -> None:
    assert format_policy(checkpoint, device(*ALL), "q4")("linear", MATRIX) == "q8"
    (notice,) = conversion_notices(checkpoint, ALL, "q4", device="cpu")
    assert notice == "device cpu does not compute with q4: weights are quantised to q8"


def test_nothing_is_said_of_a_device_that_has_all(checkpoint: Checkpoint) -> None:
    assert conversion_notices(checkpoint, ALL, "q8", device="cpu") == ()


@pytest.mark.parametrize(
    ("stored", "device_formats", "expected"),
    [
        ("bf16", ("f16", "f32"), "f32"),
        ("f16", ("bf16", "f32"), "f32"),
        ("f32", ("f16", "bf16"), "bf16"),
        ("bf16", ("f16",), "f16"),
        ("f16", ("f16", "f32"), "f16"),
    ],
)
def test_the_nearest_format_keeps_most(stored: str, device_formats: tuple[str, ...], expected: str) -> None:
    assert nearest_format(stored, device_formats) == expected


@pytest.fixture
def quantized(tmp_path: Path) -> Iterator[Checkpoint]:
    path = write_gguf(tiny_model("llama2-mha"), tmp_path / "m.gguf", gguf.GGMLQuantizationType.Q8_0)
    with find_source(path).open_checkpoint() as opened:
        yield opened


BLOCKS = TensorRef("token_embd.weight", (131, 64))


@pytest.mark.parametrize(
    ("integer_ops", "expected"),
    [(FACTOR_OPS, ["q8_0", "q8_0", "f16", "f16"]), (("head", "embed"), ["q8_0", "f16", "q8_0", "f16"])],
)
def test_stored_integers_stay_for_the_ops_that_the_device_gives_them_to(
    quantized: Checkpoint, integer_ops: tuple[str, ...], expected: list[str]
) -> None:
    format_of = format_policy(quantized, device(*ALL, "q8_0", integer_ops=integer_ops), None)
    assert [format_of(kind, BLOCKS) for kind in ("head", "linear", "embed", "embed_position")] == expected
    assert conversion_notices(quantized, (*ALL, "q8_0"), None, device="cpu") == ()


def test_blocks_that_run_along_the_outputs_become_numbers(quantized: Checkpoint) -> None:
    format_of = format_policy(quantized, device(*ALL, "q8_0"), None)
    whole = TensorRef("blk.0.ffn_up.weight", (2, 48, 64), is_stack=True)
    assert format_of("head_linear", whole) == "q8_0"
    turned = TensorRef("blk.0.ffn_up.weight", (2, 48, 64), is_stack=True, is_transposed=True)
    assert format_of("head_linear", turned) == "f16"


def test_stored_integers_become_numbers_on_a_device_that_lacks_them(quantized: Checkpoint) -> None:
    assert format_policy(quantized, device(*ALL), None)("head", BLOCKS) == "f16"
    (notice,) = conversion_notices(quantized, ALL, None, device="slow")
    assert notice == "device slow does not compute with q8_0: weights are converted to f16"


FP8 = TensorRef("fp8", (4, 4))


@pytest.fixture
def scaled(tmp_path: Path) -> Iterator[Checkpoint]:
    tensors: Tensors = {"fp8": np.zeros((4, 4), np.int8), "fp8_scale": np.ones(1, np.float32)}
    write_safetensors(tmp_path / "model.safetensors", tensors, {})
    with Checkpoint.open(find_shards(tmp_path)) as opened:
        yield opened


def test_fp8_stays_where_a_device_multiplies_by_it(scaled: Checkpoint) -> None:
    format_of = format_policy(scaled, device(*ALL, "fp8"), None)
    assert format_of("linear", FP8) == "fp8"
    assert format_of("embed", FP8) == "f16"
    assert format_policy(scaled, device("fp8", *ALL, integer_ops=TABLE_OPS), None)("embed", FP8) == "fp8"


def test_fp8_that_is_transposed_is_widened_without_a_loss(scaled: Checkpoint) -> None:
    turned = TensorRef("fp8", (4, 4), is_transposed=True)
    assert format_policy(scaled, device(*ALL, "fp8"), None)("linear", turned) == "f32"
    assert format_policy(scaled, device(*ALL), None)("linear", turned) == "f16"


def test_fp8_becomes_plain_on_a_device_that_lacks_it(scaled: Checkpoint) -> None:
    assert format_policy(scaled, device(*ALL), None)("linear", FP8) == "f16"
    (notice,) = conversion_notices(scaled, ALL, None, device="slow")
    assert notice == "device slow does not compute with fp8: weights are converted to f16"


def test_fp8_may_be_quantised(scaled: Checkpoint) -> None:
    assert format_policy(scaled, device(*ALL, "fp8"), "q8")("linear", FP8) == "q8"
    assert stored_integers(scaled) == []


@pytest.mark.parametrize("name", ["q5", "q4_k", "f16", ""])
def test_a_format_that_is_none_of_ours_is_refused_with_those_that_are(
    checkpoint: Checkpoint, name: str
) -> None:
    with pytest.raises(
        ConfigError, match=f"quant {name}: weights cannot be quantised to this format"
    ) as caught:
        format_policy(checkpoint, device(*ALL), name)
    assert "q8_g32" in caught.value.hint


def test_what_is_quantised_is_not_quantised_again(quantized: Checkpoint) -> None:
    with pytest.raises(ConfigError, match=r"m.gguf are stored quantised already, as q8_0") as caught:
        format_policy(quantized, device(*ALL, "q8_0"), "q8")
    assert 'quant = "none"' in caught.value.hint
    assert stored_integers(quantized) == ["q8_0"]


def test_a_device_without_a_plain_format_is_faulty(checkpoint: Checkpoint) -> None:
    with pytest.raises(PluginError, match="no plain weight format"):
        format_policy(checkpoint, device("q8"), None)
