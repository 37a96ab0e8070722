"""Weights of few blocks, from a file or quantised while they load, are read,
packed and multiplied on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import HIDDEN, INTEGER_FORMATS, OWN_FORMATS, Device, HostHidden, Linear, StageLimits, TensorRef
from llmd.api.integer_formats import ROW_ACTIVATION_GROUP
from llmd.builtin.reference.device import ReferenceDevice
from llmd.models.checkpoint import Checkpoint
from llmd.models.formats.dequantization import dequantize
from llmd.models.formats.gguf_blocks import BLOCK_FORMATS, block_bytes
from llmd.models.formats.quantization import quantize
from llmd.models.model_source import find_source
from llmd.models.shards import find_shards
from llmd.models.weight_source import CheckpointSource
from llmd_backend_cpu import _ext
from llmd_backend_cpu.device import CpuDevice
from tests.golden.checkpoint import write_safetensors
from tests.instruction_sets import TESTED
from tests.plugins.backend_cpu.workbench import middle_program, one_sequence, quantized_rows, random_rows

DEVICES = ("reference", *_ext.available_isas())
NAME = "blk.0.ffn_down.weight"
MOST = 1.0
"""The largest number of random blocks: beyond it, sums of float32 lose what is to be compared."""

Array = NDArray[np.float32]


@pytest.fixture(params=DEVICES)
def device(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Iterator[Device]:
    if request.param == "reference":
        yield ReferenceDevice()
        return
    record_property(TESTED, request.param)
    device = CpuDevice(isa=request.param, threads=2)
    yield device
    device.close()


def block_len(fmt: str) -> int:
    form = INTEGER_FORMATS[fmt]
    return form.coarse_size or form.group_size or ROW_ACTIVATION_GROUP


def random_blocks(fmt: str, num_rows: int, row_len: int) -> NDArray[np.uint8]:
    """Rows of any blocks whose numbers are small."""
    kind = gguf.GGMLQuantizationType[fmt.upper()]
    draw, needed = np.random.default_rng(3), num_rows * row_len // block_len(fmt)
    found: list[NDArray[np.uint8]] = []
    while sum(map(len, found)) < needed:
        blocks = draw.integers(0, 256, (4000, block_bytes(fmt, block_len(fmt))), dtype=np.uint8)
        with np.errstate(all="ignore"):
            found.append(blocks[(np.abs(gguf.quants.dequantize(blocks, kind)) <= MOST).all(axis=1)])
    return np.concatenate(found)[:needed].reshape(num_rows, -1)


def multiply(device: Device, source: CheckpointSource, fmt: str, shape: tuple[int, int], x: Array) -> Array:
    """The rows of ``x`` times the weight of that shape."""
    op = Linear(HIDDEN, (HIDDEN,), (TensorRef(NAME, shape),), (None,))
    program = middle_program((op,), shape[1], {NAME: fmt}, None)
    loaded = device.load(program, source, lambda _done, _total: None)
    stage = loaded.stage({}, StageLimits(len(x), 1, 1))
    ticket = stage.submit(one_sequence(len(x)), HostHidden(x), None)
    product = stage.hidden(ticket).host().copy()
    stage.release(ticket)
    stage.close()
    loaded.close()
    return product


def assert_multiplies(device: Device, source: CheckpointSource, fmt: str, weight: Array) -> None:
    """The product is that of the weight and rows that are rounded as devices round them."""
    form, (_, width) = INTEGER_FORMATS[fmt], weight.shape
    for num_rows in (1, 5, 40):
        x = random_rows(num_rows, width)
        codes, scales = quantized_rows(x, form.activation_group(width), form.activation_limit)
        expected = (codes * scales) @ weight.T.astype(np.float64)
        error = multiply(device, source, fmt, (len(weight), width), x) - expected
        assert np.sum(error**2) <= 1e-9 * np.sum(expected**2), f"{num_rows} rows"


@pytest.mark.parametrize("fmt", BLOCK_FORMATS)
@pytest.mark.parametrize("num_blocks", [1, 3])
def test_blocks_of_a_file(device: Device, fmt: str, num_blocks: int, tmp_path: Path) -> None:
    width = num_blocks * block_len(fmt)
    blocks = random_blocks(fmt, width, width)
    kind = gguf.GGMLQuantizationType[fmt.upper()]
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_tensor(NAME, blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with find_source(tmp_path / "m.gguf").open_checkpoint() as checkpoint:
        assert_multiplies(device, CheckpointSource(checkpoint), fmt, gguf.quants.dequantize(blocks, kind))


@pytest.mark.parametrize("fmt", OWN_FORMATS)
def test_weights_that_are_quantised(device: Device, fmt: str, tmp_path: Path) -> None:
    block = block_len(fmt)
    others = () if INTEGER_FORMATS[fmt].coarse_size else (1, block - 1, block + 1)
    for width in (block, *others):
        plain = random_rows(width, width, seed=1)
        write_safetensors(tmp_path / "model.safetensors", {NAME: plain}, {})
        with Checkpoint.open(find_shards(tmp_path)) as checkpoint:
            expected = dequantize(quantize(plain, fmt))
            assert_multiplies(device, CheckpointSource(checkpoint), fmt, expected)
