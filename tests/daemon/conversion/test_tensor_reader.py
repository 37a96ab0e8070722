"""Contents of the tensors of a converted model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import TensorRef
from llmd.api.errors import CheckpointError
from llmd.conversion.orders import HeadOrder, Reorder
from llmd.conversion.tensor_map import MappedPart, MappedTensor
from llmd.conversion.tensor_reader import TensorReader
from llmd.models.checkpoint import Checkpoint
from llmd.models.formats.gguf_quantization import quantize_to_blocks
from llmd.models.plain_formats import from_float32
from llmd.models.shards import Shards
from tests.golden.checkpoint import write_safetensors

DRAWN = np.random.default_rng(1).standard_normal((8, 64), np.float32)
TENSORS: Mapping[str, Any] = {
    "matrix": DRAWN,
    "half": from_float32(DRAWN, "bf16"),
    "vector": np.array([1.5, 1e-5, 70000.0], np.float32),
    "exact": np.array([1.5, 0.25], np.float32),
    "logs": np.array([0.5, -1.25, 2.75], np.float32),
    "stack": DRAWN.reshape(2, 4, 64),
    "table": np.array([[0, 4], [3, 1]], np.int64),
    **{f"experts.{number}.w": DRAWN[4 * number :][:4] for number in range(2)},
    "blocks_blocks": np.arange(2 * 3 * 2 * 16, dtype=np.uint8).reshape(2, 3, 2, 16),
    "blocks_scales": np.arange(120, 132, dtype=np.uint8).reshape(2, 3, 2),
}
STACK = TensorRef("experts.*.w", (2, 4, 64), is_stack=True)
FUSED = TensorRef("new", (2, 8, 64), is_stack=True)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Iterator[Checkpoint]:
    path = tmp_path / "model.safetensors"
    write_safetensors(path, TENSORS, {})
    with Checkpoint.open(Shards(path, (path,))) as opened:
        yield opened


def reader(checkpoint: Checkpoint, name: str, fmt: str, **changes: Any) -> TensorReader:
    ref = TensorRef(name, checkpoint.tensors[name].shape)
    part = MappedPart(ref, msgspec.structs.replace(ref, name="new"), **changes)
    return reader_of(checkpoint, MappedTensor(part.target, frozenset(), (part,)), fmt)


def reader_of(checkpoint: Checkpoint, tensor: MappedTensor, fmt: str) -> TensorReader:
    return TensorReader(checkpoint, {"new": tensor}, {"new": fmt})


def read(checkpoint: Checkpoint, name: str, fmt: str, **changes: Any) -> NDArray[np.generic]:
    (content,) = reader(checkpoint, name, fmt, **changes)("new")
    return content


def test_a_stored_format_is_handed_out_as_it_lies_there(checkpoint: Checkpoint) -> None:
    found = read(checkpoint, "half", "bf16")
    assert np.array_equal(found, TENSORS["half"])
    assert not found.flags.owndata


def test_plain_formats_are_converted_and_blocks_made(checkpoint: Checkpoint) -> None:
    assert np.array_equal(read(checkpoint, "matrix", "f16"), DRAWN.astype(np.float16))
    assert np.array_equal(
        read(checkpoint, "half", "q4_0"), quantize_to_blocks(TENSORS["half"], "bf16", "q4_0")
    )


def test_rows_are_put_into_another_order_also_as_blocks(checkpoint: Checkpoint) -> None:
    reorder = Reorder(heads=2, head_dim=4, rotary_dim=4, interleaves=True)
    order = [0, 2, 1, 3, 4, 6, 5, 7]
    assert np.array_equal(read(checkpoint, "matrix", "f32", rows=reorder), DRAWN[order])
    blocks = read(checkpoint, "matrix", "q8_0", rows=reorder)
    assert np.array_equal(blocks, quantize_to_blocks(DRAWN[order], "f32", "q8_0"))


def test_columns_are_put_into_another_order_before_blocks_are_made(checkpoint: Checkpoint) -> None:
    columns = HeadOrder(heads=4, key_heads=2, dim=16, tiles=True)
    ordered = DRAWN.reshape(8, 2, 2, 16).swapaxes(1, 2).reshape(8, 64)
    assert np.array_equal(read(checkpoint, "matrix", "f32", columns=columns), ordered)
    blocks = read(checkpoint, "matrix", "q8_0", columns=columns)
    assert np.array_equal(blocks, quantize_to_blocks(ordered, "f32", "q8_0"))


def test_experts_are_read_one_at_a_time(checkpoint: Checkpoint) -> None:
    stack = msgspec.structs.replace(STACK, name="new")
    tensor = MappedTensor(stack, frozenset(), (MappedPart(STACK, stack),))
    first, second = reader_of(checkpoint, tensor, "f16")("new")
    assert np.array_equal(first, DRAWN[:4].astype(np.float16))
    assert np.array_equal(second, DRAWN[4:].astype(np.float16))


def test_parts_are_joined_in_alternating_rows_and_transposed(checkpoint: Checkpoint) -> None:
    gate, up = (msgspec.structs.replace(FUSED, rows=(half, half + 1), period=2) for half in (0, 1))
    parts = (MappedPart(STACK, gate), MappedPart(STACK, up))
    joined = next(reader_of(checkpoint, MappedTensor(FUSED, frozenset(), parts), "f32")("new"))
    assert np.array_equal(joined, np.repeat(DRAWN[:4], 2, axis=0))
    transposed = msgspec.structs.replace(STACK, name="new", shape=(2, 64, 4), is_transposed=True)
    tensor = MappedTensor(transposed, frozenset(), (MappedPart(STACK, transposed),))
    assert np.array_equal(next(reader_of(checkpoint, tensor, "f32")("new")), DRAWN[:4].T)


def test_codes_and_scales_are_written_as_they_were(checkpoint: Checkpoint) -> None:
    source = TensorRef("blocks", (2, 3, 64), is_stack=True)
    target = msgspec.structs.replace(source, name="new")
    tensor = MappedTensor(target, frozenset(), (MappedPart(source, target),))
    for end in ("_blocks", "_scales"):
        found = np.stack(list(reader_of(checkpoint, tensor, "mxfp4")(f"new{end}")))
        assert np.array_equal(found, TENSORS[f"blocks{end}"])


def test_integers_are_copied_if_they_are_in_range(checkpoint: Checkpoint) -> None:
    def table(below: int) -> TensorReader:
        ref = TensorRef("table", (2, 2), integers_below=below)
        part = MappedPart(ref, msgspec.structs.replace(ref, name="new"))
        return reader_of(checkpoint, MappedTensor(part.target, frozenset(), (part,)), "i32")

    (found,) = table(5)("new")
    assert found.dtype == np.int32
    assert np.array_equal(found, TENSORS["table"])
    with pytest.raises(CheckpointError, match=r"table: has numbers in 0\.\.4, expected 0\.\.3"):
        list(table(4)("new"))


def test_rates_become_negative_and_logarithms_again(tmp_path: Path, checkpoint: Checkpoint) -> None:
    rates = read(checkpoint, "logs", "f32", rates="negative")
    assert np.array_equal(rates, -np.exp(TENSORS["logs"]))
    write_safetensors(
        path := tmp_path / "rates.safetensors", {"rates": rates, "wrong": np.negative(rates)}, {}
    )
    with Checkpoint.open(Shards(path, (path,))) as stored:
        assert read(stored, "rates", "f32", rates="log") == pytest.approx(TENSORS["logs"], rel=1e-6)
        assert np.array_equal(
            read(stored, "rates", "bf16", rates="log"), from_float32(TENSORS["logs"], "bf16")
        )
        assert reader(stored, "rates", "f32", rates="log").fits("new", "bf16")
        with pytest.raises(CheckpointError, match="should be negative"):
            read(stored, "wrong", "f32", rates="log")


def test_what_norms_leave_to_be_added_is_added(checkpoint: Checkpoint) -> None:
    found = read(checkpoint, "exact", "f32", shift=1.0)
    assert found.tolist() == [2.5, 1.25]
    back = read(checkpoint, "exact", "f16", shift=-1.0)
    assert back.dtype == np.float16
    assert back.tolist() == [0.5, -0.75]


def test_whether_a_format_loses_something_is_known_before(checkpoint: Checkpoint) -> None:
    assert reader(checkpoint, "exact", "f32").fits("new", "bf16")
    assert not reader(checkpoint, "vector", "f32").fits("new", "bf16")
    assert not reader(checkpoint, "vector", "f32").fits("new", "f16")


def test_a_value_that_does_not_fit_names_tensor_and_fix(checkpoint: Checkpoint) -> None:
    with pytest.raises(CheckpointError, match=r"vector: cannot be written as f16: .*70001") as refused:
        read(checkpoint, "vector", "f16", shift=1.0)
    assert "--quant" in refused.value.hint
