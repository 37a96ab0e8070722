"""Packed weights on disk are read at the next load, and packed again if anything is wrong with the file."""

from __future__ import annotations

import os
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

from llmd.api import INTEGER_FORMATS, Program, StageLimits, Weight, WeightData
from llmd.api.messages import Load
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.engine.loading import load_model
from llmd.models.weight_source import CheckpointSource
from llmd.registry.packed_weights import PackedWeightFiles
from llmd_backend_cpu import _ext, packed_writer
from llmd_backend_cpu import weights as weights_module
from llmd_backend_cpu.device import CpuDevice
from llmd_backend_cpu.packed_writer import PackedWriter
from llmd_backend_cpu.topology import Processor
from llmd_backend_cpu.weights import CpuWeights
from tests.golden.checkpoint import write_checkpoint
from tests.golden.models.catalog import tiny_model
from tests.plugins.backend_cpu.workbench import (
    Weights,
    linear,
    middle_program,
    random_integers,
    random_rows,
    run_rows,
)

WIDTH = 512
LARGE_WIDTH = 2048
"""The width of a matrix that takes more than a huge page."""
HEADER_BYTES = 4096


def program(fmt: str, width: int = WIDTH) -> Program:
    return middle_program([linear(width)], width, {"w": fmt}, None)


def load(
    device: CpuDevice, fmt: str, weight: WeightData | None, packed: Path, width: int = WIDTH
) -> CpuWeights:
    weights = {} if weight is None else {"w": weight}
    return device.load(program(fmt, width), Weights(weights, packed), lambda _done, _total: None)


def keep(device: CpuDevice, fmt: str, packed: Path, width: int = WIDTH) -> WeightData:
    """Load a weight, and wait until it is on disk."""
    weight = random_integers(fmt, width, width)
    loaded = load(device, fmt, weight, packed, width)
    assert loaded.writer is not None
    loaded.writer.wait()
    loaded.close()
    return weight


def product(device: CpuDevice, loaded: CpuWeights, width: int = WIDTH) -> np.ndarray:
    stage = loaded.stage({}, StageLimits(4, 1, 1))
    try:
        return run_rows(stage, random_rows(2, width))
    finally:
        stage.close()


def overwrite(path: Path) -> None:
    """Change the contents of a file in place."""
    with path.open("r+b") as file:
        file.write(bytes(path.stat().st_size))


@pytest.mark.parametrize("fmt", INTEGER_FORMATS)
def test_what_was_packed_is_read_back_bit_for_bit(device: CpuDevice, tmp_path: Path, fmt: str) -> None:
    weight = keep(device, fmt, tmp_path / "packed")
    expected = product(device, load(device, fmt, weight, tmp_path / "elsewhere"))
    again = load(device, fmt, None, tmp_path / "packed")  # without a weight to read
    np.testing.assert_array_equal(product(device, again), expected)


def test_a_model_that_was_loaded_once_is_read_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = tiny_model("tinyllama")
    directory = write_checkpoint(case, tmp_path / "model")
    architectures = {name: one for one in llmd_architectures() for name in one.names}
    message = Load(str(directory), slots=1, quant="q4", kv_dtype="f32", weight_cache=1 << 30)

    def logits() -> np.ndarray:
        model = load_model(
            message, architectures, lambda _: CpuDevice(), lambda _: None, None, PackedWeightFiles(tmp_path)
        )
        try:
            while not [*tmp_path.glob("packed/*/*.packed")]:
                time.sleep(0.01)
            return model.core.forward(np.array(case.prompt, np.int32))
        finally:
            model.close()

    expected = logits()
    read = CheckpointSource.read
    formats: list[str] = []

    def noting(source: CheckpointSource, weight: Weight) -> WeightData:
        formats.append(weight.format)
        return read(source, weight)

    monkeypatch.setattr(CheckpointSource, "read", noting)
    np.testing.assert_array_equal(logits(), expected)
    assert formats
    assert not set(formats) & set(INTEGER_FORMATS)


def test_a_file_of_one_instruction_set_serves_every_other(tmp_path: Path) -> None:
    weight = keep(CpuDevice(_ext.available_isas()[0]), "q4", tmp_path / "packed")
    for isa in _ext.available_isas():
        device = CpuDevice(isa)
        expected = product(device, load(device, "q4", weight, tmp_path / isa))
        np.testing.assert_array_equal(
            product(device, load(device, "q4", None, tmp_path / "packed")), expected
        )


@pytest.mark.parametrize("place", [0, 4096, 70_001, -HEADER_BYTES - 1, -HEADER_BYTES, 9 - HEADER_BYTES, -1])
def test_a_damaged_byte_is_never_trusted(device: CpuDevice, tmp_path: Path, place: int) -> None:
    packed = tmp_path / "packed"
    weight = keep(device, "q4", packed)
    expected = product(device, load(device, "q4", None, packed))
    contents = bytearray(packed.read_bytes())
    contents[place] ^= 0xFF
    packed.write_bytes(contents)
    loaded = load(device, "q4", weight, packed)
    np.testing.assert_array_equal(product(device, loaded), expected)
    assert loaded.writer is not None
    loaded.writer.wait()
    assert packed.read_bytes() != contents


@pytest.mark.parametrize("kept", [0, 1, 0.5])
def test_a_file_that_was_cut_is_never_trusted(device: CpuDevice, tmp_path: Path, kept: float) -> None:
    packed = tmp_path / "packed"
    keep(device, "q4", packed)
    contents = packed.read_bytes()
    packed.write_bytes(contents[: int(kept * (len(contents) - HEADER_BYTES))])
    with pytest.raises(KeyError):  # it reads the weight, which is missing
        load(device, "q4", None, packed)


def test_pages_that_a_disk_lost_are_never_trusted(device: CpuDevice, tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    keep(device, "q4", packed)
    contents = packed.read_bytes()
    packed.write_bytes(bytes(len(contents) - HEADER_BYTES) + contents[-HEADER_BYTES:])
    with pytest.raises(KeyError):
        load(device, "q4", None, packed)


def test_a_disk_that_does_not_take_it_is_only_logged(
    device: CpuDevice, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    packed = tmp_path / "not there" / "packed"
    weight = keep(device, "q4", packed)
    assert "packed_weights_not_kept" in caplog.text
    assert load(device, "q4", weight, packed).writer is not None


def test_the_writing_waits_for_the_first_answers(
    device: CpuDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_writer, "_DELAY_S", 1000.0)
    loaded = load(device, "q4", random_integers("q4", WIDTH, WIDTH), tmp_path / "packed")
    product(device, loaded)
    assert not (tmp_path / "packed").exists()
    loaded.close()
    assert (tmp_path / "packed").exists()


def test_weights_that_nobody_needs_any_more_are_not_kept_for_writing(
    device: CpuDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_writer, "_DELAY_S", 1000.0)
    loaded = load(device, "q4", random_integers("q4", WIDTH, WIDTH), tmp_path / "packed")
    writer = loaded.writer
    assert writer is not None
    thread, wanted, known = writer._thread, writer._wanted, weakref.ref(writer)
    del loaded, writer
    assert known() is None
    wanted.set()
    thread.join()
    assert not (tmp_path / "packed").exists()


def test_the_writing_leaves_the_processors_to_the_steps(
    device: CpuDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    priorities: list[int] = []

    def note(_weights: _ext.Weights, _path: str) -> None:
        priorities.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    monkeypatch.setattr(_ext.Weights, "write_packed", note)
    keep(device, "q4", tmp_path / "packed")
    assert priorities == [19]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) < 19


def test_closing_lets_the_writing_end(device: CpuDevice, tmp_path: Path) -> None:
    load(device, "q8", random_integers("q8", WIDTH, WIDTH), tmp_path / "packed").close()
    load(device, "q8", None, tmp_path / "packed").close()


@pytest.mark.parametrize(("packing_s", "waited_s"), [(1.0, 5.0), (60.0, 60.0)])
def test_closing_waits_for_the_writing_as_long_as_packing_took(
    device: CpuDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packing_s: float, waited_s: float
) -> None:
    loaded = load(device, "q8", random_integers("q8", WIDTH, WIDTH), tmp_path / "elsewhere")
    writer = PackedWriter(loaded._loaded(), str(tmp_path / "packed"), packing_s)
    join, limits = threading.Thread.join, list[float | None]()

    def note(thread: threading.Thread, timeout: float | None = None) -> None:
        limits.append(timeout)
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", note)
    writer.stop()
    assert limits == [waited_s, None]


def test_closing_ends_a_writing_that_takes_too_long(
    device: CpuDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_writer, "_LEAST_END_S", 0.0)
    load(device, "q8", random_integers("q8", WIDTH, WIDTH), tmp_path / "packed").close()
    assert {path.name for path in tmp_path.iterdir()} <= {"packed"}  # a whole file or none


def test_where_memory_is_short_the_file_itself_is_used(
    device: CpuDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight = keep(device, "q4", tmp_path / "packed")
    expected = product(device, load(device, "q4", weight, tmp_path / "elsewhere"))
    monkeypatch.setattr(weights_module, "available_bytes", lambda: 4000)
    mapped = load(device, "q4", None, tmp_path / "packed")
    assert device.free_bytes() == 4000  # the system can drop the file's pages
    monkeypatch.undo()
    np.testing.assert_array_equal(product(device, mapped), expected)
    mapped.close()
    del mapped
    assert device.free_bytes() != 4000


def test_a_file_of_many_pages_is_read_back_bit_for_bit(device: CpuDevice, tmp_path: Path) -> None:
    weight = keep(device, "q4", tmp_path / "packed", LARGE_WIDTH)
    expected = product(device, load(device, "q4", weight, tmp_path / "elsewhere", LARGE_WIDTH), LARGE_WIDTH)
    again = load(device, "q4", None, tmp_path / "packed", LARGE_WIDTH)
    np.testing.assert_array_equal(product(device, again, LARGE_WIDTH), expected)


def test_a_file_that_lies_in_small_pages_is_copied(device: CpuDevice, tmp_path: Path) -> None:
    weight = keep(device, "q4", tmp_path / "packed", LARGE_WIDTH)
    expected = product(device, load(device, "q4", weight, tmp_path / "elsewhere", LARGE_WIDTH), LARGE_WIDTH)
    contents, small = (tmp_path / "packed").read_bytes(), tmp_path / "small"
    with small.open("wb", buffering=0) as file:
        for at in range(0, len(contents), 4096):
            file.write(contents[at : at + 4096])
    copied = load(device, "q4", None, small, LARGE_WIDTH)
    overwrite(small)
    np.testing.assert_array_equal(product(device, copied, LARGE_WIDTH), expected)


def test_on_several_nodes_each_reads_from_memory_of_its_own(
    device: CpuDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight = keep(device, "q4", tmp_path / "packed", LARGE_WIDTH)
    expected = product(device, load(device, "q4", weight, tmp_path / "elsewhere", LARGE_WIDTH), LARGE_WIDTH)
    nodes = (Processor(0, False, 0, 0), Processor(0, False, 1, 1))
    monkeypatch.setattr(weights_module, "usable_processors", lambda: nodes)
    copied = load(device, "q4", None, tmp_path / "packed", LARGE_WIDTH)
    overwrite(tmp_path / "packed")
    np.testing.assert_array_equal(product(device, copied, LARGE_WIDTH), expected)
