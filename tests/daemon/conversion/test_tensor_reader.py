"""Contents of the tensors of a converted model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmd.api import TensorRef
from llmd.api.errors import CheckpointError
from llmd.conversion.tensor_map import MappedTensor, Reorder
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
}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Iterator[Checkpoint]:
    path = tmp_path / "model.safetensors"
    write_safetensors(path, TENSORS, {})
    with Checkpoint.open(Shards(path, (path,))) as opened:
        yield opened


def reader(checkpoint: Checkpoint, name: str, fmt: str, **changes: Any) -> TensorReader:
    ref = TensorRef(name, checkpoint.tensors[name].shape)
    return TensorReader(checkpoint, {"new": MappedTensor("new", ref, frozenset(), **changes)}, {"new": fmt})


def test_a_stored_format_is_handed_out_as_it_lies_there(checkpoint: Checkpoint) -> None:
    found = reader(checkpoint, "half", "bf16")("new")
    assert np.array_equal(found, TENSORS["half"])
    assert not found.flags.owndata


def test_plain_formats_are_converted_and_blocks_made(checkpoint: Checkpoint) -> None:
    assert np.array_equal(reader(checkpoint, "matrix", "f16")("new"), DRAWN.astype(np.float16))
    assert np.array_equal(
        reader(checkpoint, "half", "q4_0")("new"), quantize_to_blocks(TENSORS["half"], "bf16", "q4_0")
    )


def test_rows_are_put_into_another_order_also_as_blocks(checkpoint: Checkpoint) -> None:
    reorder = Reorder(heads=2, head_dim=4, rotary_dim=4, interleaves=True)
    order = [0, 2, 1, 3, 4, 6, 5, 7]
    assert np.array_equal(reader(checkpoint, "matrix", "f32", reorder=reorder)("new"), DRAWN[order])
    blocks = reader(checkpoint, "matrix", "q8_0", reorder=reorder)("new")
    assert np.array_equal(blocks, quantize_to_blocks(DRAWN[order], "f32", "q8_0"))


def test_what_norms_leave_to_be_added_is_added(checkpoint: Checkpoint) -> None:
    found = reader(checkpoint, "exact", "f32", shift=1.0)("new")
    assert found.tolist() == [2.5, 1.25]
    back = reader(checkpoint, "exact", "f16", shift=-1.0)("new")
    assert back.dtype == np.float16
    assert back.tolist() == [0.5, -0.75]


def test_whether_a_format_loses_something_is_known_before(checkpoint: Checkpoint) -> None:
    assert reader(checkpoint, "exact", "f32").fits("new", "bf16")
    assert not reader(checkpoint, "vector", "f32").fits("new", "bf16")
    assert not reader(checkpoint, "vector", "f32").fits("new", "f16")


def test_a_value_that_does_not_fit_names_tensor_and_fix(checkpoint: Checkpoint) -> None:
    with pytest.raises(CheckpointError, match=r"vector: cannot be written as f16: .*70001") as refused:
        reader(checkpoint, "vector", "f16", shift=1.0)("new")
    assert "--quant" in refused.value.hint
