from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from llmd.api.errors import CheckpointError
from llmd.models.mapped_file import PIECE_BYTES, MappedFile, map_file, opening


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "w"
    path.write_bytes(np.arange(4, dtype="<f4").tobytes())
    return path


def test_an_array_outlives_its_file(path: Path) -> None:
    with opening(path) as file:
        mapped = MappedFile(path, file, mapper=map_file)
    array = mapped.array(np.dtype("<f4"), (2,), 8, tensor="t")
    mapped.close()
    assert array.tolist() == [2, 3]


def test_an_array_of_nothing_may_lie_at_the_end(path: Path) -> None:
    with opening(path) as file:
        mapped = MappedFile(path, file, mapper=map_file)
    assert mapped.array(np.dtype("<f4"), (0, 4), 16, tensor="t").shape == (0, 4)
    mapped.close()


def test_a_file_is_closed_where_opening_it_fails(path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be mapped"), opening(path) as file:
        raise OSError(12, "Cannot allocate memory")
    assert file.closed
    with pytest.raises(KeyError), opening(path) as file:
        raise KeyError
    assert file.closed


def test_what_was_read_can_be_given_back_and_read_again(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(bytes(range(256)) * 4096)
    file = (tmp_path / "weights").open("rb")
    mapped = MappedFile(tmp_path / "weights", file, mapper=map_file)
    array = mapped.array(np.dtype("u1"), (4096, 256), 0, tensor="t")
    total = int(array.sum(dtype=np.int64))
    assert resident_kib(tmp_path / "weights") >= 1024
    mapped.release()
    assert resident_kib(tmp_path / "weights") == 0
    assert int(array.sum(dtype=np.int64)) == total
    mapped.close()


def test_a_part_is_fetched_whole_and_nothing_beyond(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "weights").write_bytes(bytes(4 * PIECE_BYTES))
    reads: list[tuple[int, int]] = []
    real = os.preadv

    def preadv(number: int, buffers: list[bytearray], at: int) -> int:
        reads.append((at, count := real(number, buffers, at)))
        return count

    monkeypatch.setattr(os, "preadv", preadv)
    with (tmp_path / "weights").open("rb") as file:
        mapped = MappedFile(tmp_path / "weights", file, mapper=map_file)
        mapped.fetch(7, 2 * PIECE_BYTES)
        mapped.fetch(3 * PIECE_BYTES, 5)
        mapped.close()
    assert reads == [
        (7, PIECE_BYTES),
        (7 + PIECE_BYTES, PIECE_BYTES),
        (3 * PIECE_BYTES, 5),
    ]


def resident_kib(path: Path) -> int:
    """Return the memory that maps of a file take in this process."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    return sum(
        int(next(line for line in lines if line.startswith("Rss:")).split()[1])
        for of in lines
        if of.endswith(str(path))
    )


def test_part_is_dropped_from_the_process_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(bytes(range(256)) * (4 << 12))
    with path.open("rb") as file:
        mapped = MappedFile(path, file, mapper=map_file)
        part = mapped.array(np.dtype(np.uint8), (1 << 20,), 3 << 20, tensor="w")
        mapped.advise(3 << 20, 1 << 20, needed=True)
        expected = int(part.sum())
        before_kib = resident_kib(path)
        mapped.advise(3 << 20, 1 << 20, needed=False)
        assert before_kib - resident_kib(path) >= 1024
        assert int(part.sum()) == expected
        mapped.advise(4 << 20, 0, needed=True)  # nothing, at the end of the file
        mapped.close()


def test_nothing_stays_mapped_of_the_neighbours_of_a_part(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(bytes(12 << 20))
    begin, size = (5 << 20) + 5 * 4096 + 100, (1 << 20) + 7 * 4096
    with path.open("rb") as file:
        mapped = MappedFile(path, file, mapper=map_file)
        part = mapped.array(np.dtype(np.uint8), (size,), begin, tensor="w")
        assert not part.any()
        assert resident_kib(path) >= 1024
        mapped.advise(begin, size, needed=False)
        assert resident_kib(path) == 0
        mapped.close()
