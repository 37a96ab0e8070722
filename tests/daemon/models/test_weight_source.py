from __future__ import annotations

import os
import queue
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gguf
import numpy as np
import pytest

from llmd.api import CheckpointError, TensorRef, Weight
from llmd.models import weight_source
from llmd.models.checkpoint import Checkpoint
from llmd.models.formats.dequantization import dequantize
from llmd.models.formats.quantization import quantize
from llmd.models.gguf.gguf_file import GgufFile
from llmd.models.model_source import find_source
from llmd.models.read_ahead import ReadAhead
from llmd.models.shards import find_shards
from llmd.models.weight_source import CheckpointSource
from tests.corrupt.small_model import write_raw
from tests.golden.checkpoint import write_safetensors
from tests.golden.gguf_layout import gguf_tensors, write_gguf
from tests.golden.models.catalog import tiny_model

VALUES = np.random.default_rng(2).standard_normal((6, 64)).astype(np.float32)
BITS = (VALUES.view(np.uint32) >> 16).astype(np.uint16)
BAD = np.array([[1.0, np.inf]], np.float32)
TABLE = np.array([[4, 0], [3, 1]], np.int64)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_safetensors(
        tmp_path / "model.safetensors", {"w": VALUES, "b": BITS, "bad": BAD, "table": TABLE}, {}
    )
    return tmp_path / "model.safetensors"


@pytest.fixture
def source(path: Path) -> Iterator[CheckpointSource]:
    with Checkpoint.open(find_shards(path.parent)) as checkpoint:
        yield CheckpointSource(checkpoint)


def weight(name: str, wanted: str, rows: tuple[int, int] | None = None) -> Weight:
    return Weight(TensorRef(name, (6, 64), rows), wanted)


@pytest.mark.parametrize(("name", "stored", "values"), [("w", "f32", VALUES), ("b", "bf16", BITS)])
def test_the_stored_format_is_mapped_without_a_copy(
    source: CheckpointSource,
    name: str,
    stored: str,
    values: np.ndarray[tuple[int, int], np.dtype[np.generic]],
) -> None:
    read = source.read(weight(name, stored))
    assert not read.data.flags.owndata
    assert not read.data.flags.writeable
    np.testing.assert_array_equal(read.data, values)


def test_rows_of_a_fused_tensor_are_cut_without_a_copy(source: CheckpointSource) -> None:
    read = source.read(weight("w", "f32", (2, 5)))
    assert not read.data.flags.owndata
    assert read.data.flags.c_contiguous
    np.testing.assert_array_equal(read.data, VALUES[2:5])


def test_another_plain_format_is_converted(source: CheckpointSource) -> None:
    read = source.read(weight("b", "f32", (1, 3)))
    assert read.format == "f32"
    np.testing.assert_array_equal(read.data.view(np.uint32), BITS[1:3].astype(np.uint32) << 16)
    assert not read.data.flags.writeable


def test_q8_is_quantised_on_the_way(source: CheckpointSource) -> None:
    read = source.read(weight("b", "q8", (1, 3)))
    expected = quantize(BITS[1:3], "q8", "bf16")
    for array, wanted in zip(read.arrays, expected.arrays, strict=True):
        np.testing.assert_array_equal(array, wanted)
        assert not array.flags.writeable


def test_unaligned_data_is_copied_to_an_aligned_place(tmp_path: Path) -> None:
    header = b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'.ljust(57)
    write_raw(tmp_path / "model.safetensors", header, np.array([1, 2], np.float32).tobytes())
    with Checkpoint.open(find_shards(tmp_path)) as checkpoint:
        data = CheckpointSource(checkpoint).read(Weight(TensorRef("a", (2,)), "f32")).data
    assert data.flags.aligned
    assert data.tolist() == [1, 2]


@pytest.mark.parametrize("wanted", ["q8"])
def test_values_that_do_not_fit_the_format_name_their_tensor(source: CheckpointSource, wanted: str) -> None:
    with pytest.raises(CheckpointError, match="cannot be stored as q8: a value is infinite") as caught:
        source.read(Weight(TensorRef("bad", (1, 2)), wanted))
    assert caught.value.tensor == "bad"


@pytest.mark.parametrize(
    ("ref", "complaint"),
    [
        (TensorRef("absent", (6, 64)), "the tensor is missing"),
        (TensorRef("w", (64, 6)), "has shape"),
        (TensorRef("w", (6, 64), (4, 7)), "asks for rows"),
    ],
)
def test_a_weight_that_contradicts_the_checkpoint_is_refused(
    source: CheckpointSource, ref: TensorRef, complaint: str
) -> None:
    with pytest.raises(CheckpointError, match=complaint):
        source.read(Weight(ref, "f32"))


def test_a_file_that_shrank_since_it_was_opened_is_an_error_not_a_crash(
    path: Path, source: CheckpointSource
) -> None:
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(CheckpointError, match="shrank"):
        source.read(weight("w", "f32"))


def test_threads_read_the_same(source: CheckpointSource) -> None:
    with ThreadPoolExecutor(4) as pool:
        reads = list(pool.map(source.read, [weight("b", "q8")] * 16))
    for read in reads:
        np.testing.assert_array_equal(read.data, reads[0].data)


KINDS = [kind for kind in gguf.GGMLQuantizationType if kind.name in ("Q4_0", "Q5_1", "Q8_0")]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_blocks_of_a_gguf_file_are_integers_or_the_numbers_that_they_stand_for(
    tmp_path: Path, kind: gguf.GGMLQuantizationType
) -> None:
    case = tiny_model("llama2-mha")
    path, name, rows = write_gguf(case, tmp_path / "m.gguf", kind), "blk.1.ffn_down.weight", (8, 24)
    blocks = gguf.quants.quantize(gguf_tensors(case)[name], kind)
    expected = gguf.quants.dequantize(blocks, kind)[slice(*rows)]
    ref = TensorRef(name, (64, 160), rows)
    with find_source(path).open_checkpoint() as checkpoint:
        source = CheckpointSource(checkpoint)
        numbers = source.read(Weight(ref, "f32"))
        integers = source.read(Weight(ref, kind.name.lower()))
    np.testing.assert_array_equal(numbers.data, expected)
    np.testing.assert_array_equal(dequantize(integers), expected)
    assert not any(array.flags.writeable for array in (*integers.arrays, numbers.data))


def test_a_device_can_have_the_blocks_of_a_file_without_a_copy(tmp_path: Path) -> None:
    case, kind = tiny_model("llama2-mha"), gguf.GGMLQuantizationType.Q4_0
    path, name = write_gguf(case, tmp_path / "m.gguf", kind), "blk.1.ffn_down.weight"
    expected = gguf.quants.quantize(gguf_tensors(case)[name], kind)
    with find_source(path).open_checkpoint() as checkpoint:
        source = CheckpointSource(checkpoint)
        blocks = source.stored_blocks(Weight(TensorRef(name, (64, 160), (8, 24)), "q4_0"))
        assert source.stored_blocks(Weight(TensorRef(name, (64, 160)), "f16")) is None
        with pytest.raises(CheckpointError, match="has shape"):
            source.stored_blocks(Weight(TensorRef(name, (160, 64)), "q4_0"))
        assert blocks is not None
        assert not blocks.flags.owndata
        assert not blocks.flags.writeable
        np.testing.assert_array_equal(blocks, expected[8:24])


def test_weights_are_read_from_the_disk_before_they_are_asked_for(
    source: CheckpointSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(source._checkpoint, "fetch", fetched.put)
    used: list[str] = []
    monkeypatch.setattr(ReadAhead, "use", lambda _, name: used.append(name))
    with source.reading_ahead([weight("b", "f32"), weight("w", "f32")]) as order:
        # In file order, whatever their order in the program.
        assert list(order) == [1, 0]
        assert [fetched.get(timeout=20.0), fetched.get(timeout=20.0)] == ["w", "b"]
        source.read(weight("w", "f32"))
        assert used == ["w"]
    source.read(weight("w", "f32"))
    assert used == ["w"]
    with pytest.raises(CheckpointError, match="missing"), source.reading_ahead([weight("absent", "f32")]):
        pass


def test_small_weights_are_read_from_the_disk_without_their_surroundings(
    source: CheckpointSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []
    monkeypatch.setattr(Checkpoint, "fetch", lambda _self, name: fetched.append(name))
    source.read(weight("w", "f32"))
    assert fetched == ["w"]
    monkeypatch.setattr(weight_source, "SMALL_BYTES", VALUES.nbytes - 1)
    source.read(weight("w", "f32"))
    source.read(weight("b", "bf16"))
    assert fetched == ["w", "b"]


def test_a_small_weight_that_the_disk_does_not_give_is_an_error(
    source: CheckpointSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_checkpoint: Checkpoint, _name: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Checkpoint, "fetch", fail)
    with pytest.raises(CheckpointError, match="cannot be read: Input/output error") as raised:
        source.read(weight("w", "f32"))
    assert raised.value.tensor == "w"


def test_plain_weights_have_no_blocks(source: CheckpointSource) -> None:
    assert source.stored_blocks(weight("w", "f32")) is None
    assert source.stored_blocks(weight("w", "q8")) is None


@pytest.mark.parametrize("wanted", ["q8_0", "f16"])
def test_a_scale_that_is_no_number_names_its_tensor(tmp_path: Path, wanted: str) -> None:
    path = write_gguf(tiny_model("llama2-mha"), tmp_path / "m.gguf", gguf.GGMLQuantizationType.Q8_0)
    with find_source(path).open_checkpoint() as checkpoint:
        tensor = checkpoint.tensors["blk.1.ffn_down.weight"]
    with GgufFile.open(path) as file:
        begin = file.tensors[tensor.name].begin
    with path.open("r+b") as written:
        written.seek(begin)
        written.write(np.float16(np.nan).tobytes())
    with find_source(path).open_checkpoint() as checkpoint, pytest.raises(CheckpointError) as caught:
        CheckpointSource(checkpoint).read(Weight(TensorRef(tensor.name, tensor.shape), wanted))
    assert caught.value.tensor == tensor.name
    assert "not a number" in caught.value.message


@pytest.mark.parametrize("kind", [None, gguf.GGMLQuantizationType.Q8_0], ids=["plain", "Q8_0"])
def test_columns_of_transposed_matrices_are_read_from_numbers_and_from_blocks(
    tmp_path: Path, kind: gguf.GGMLQuantizationType | None
) -> None:
    case = tiny_model("llama2-mha")
    name = "blk.1.ffn_down.weight"
    path, stored = write_gguf(case, tmp_path / "m.gguf", kind), gguf_tensors(case)[name]
    if kind is not None:
        stored = gguf.quants.dequantize(gguf.quants.quantize(stored, kind), kind)
    shape = (2, stored.shape[0] // 2, stored.shape[1])
    ref = TensorRef(name, shape, is_stack=True, is_transposed=True, columns=(3, 20))
    expected = stored.reshape(shape)[:, 3:20].swapaxes(1, 2)
    with find_source(path).open_checkpoint() as checkpoint:
        source = CheckpointSource(checkpoint)
        found = source.read(Weight(ref, "f32"))
        np.testing.assert_allclose(found.data.astype(np.float32), expected.reshape(-1, 17), rtol=1e-6)
        assert found.data.flags.c_contiguous
        second = source.read(Weight(ref.member(1), "f32"))
        np.testing.assert_allclose(second.data.astype(np.float32), expected[1], rtol=1e-6)


@pytest.mark.parametrize("stored_apart", [False, True])
def test_advice_names_the_bytes_of_the_members_that_are_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, stored_apart: bool
) -> None:
    stack = np.arange(6 * 4 * 8, dtype=np.float32).reshape(6, 4, 8)
    apart = {f"experts.{number}.w": matrix for number, matrix in enumerate(stack)}
    write_safetensors(tmp_path / "model.safetensors", apart if stored_apart else {"experts": stack}, {})
    calls: list[tuple[str, int, int, bool]] = []
    with Checkpoint.open(find_shards(tmp_path)) as checkpoint:
        monkeypatch.setattr(
            checkpoint,
            "advise",
            lambda name, first, last, *, needed: calls.append((name, first, last, needed)),
        )
        name = "experts.*.w" if stored_apart else "experts"
        weight = Weight(TensorRef(name, (6, 4, 8), is_stack=True, members=(2, 4)), "f32")
        source = CheckpointSource(checkpoint)
        source.expect([weight])
        source.give_back([weight])
    size = 4 * 8 * 4
    if stored_apart:
        parts = [("experts.2.w", 0, size), ("experts.3.w", 0, size)]
    else:
        parts = [("experts", 2 * size, 4 * size)]
    assert calls == [(*part, True) for part in parts] + [(*part, False) for part in parts]


def test_integers_are_read_as_numbers_or_as_stored(source: CheckpointSource) -> None:
    ref = TensorRef("table", (2, 2), integers_below=5)
    read = source.read(Weight(ref, "f32")).data
    assert read.dtype == np.float32
    assert not read.flags.writeable
    np.testing.assert_array_equal(read, TABLE)
    stored = source.integers(ref)
    assert stored.dtype == np.int64
    np.testing.assert_array_equal(stored, TABLE)


def test_integers_out_of_range_are_refused(source: CheckpointSource) -> None:
    ref = TensorRef("table", (2, 2), integers_below=4)
    with pytest.raises(CheckpointError, match=r"table: has numbers in 0\.\.4, expected 0\.\.3"):
        source.read(Weight(ref, "f32"))
