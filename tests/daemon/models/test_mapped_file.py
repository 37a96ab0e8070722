from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llmd.api.errors import CheckpointError
from llmd.models.mapped_file import MappedFile, map_file, opening


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
