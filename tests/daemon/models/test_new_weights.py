"""Files have their full length from the start, and are filled one tensor at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.models.new_weights import Layout, NewTensor, write_header, write_tensors


@pytest.mark.parametrize(
    ("tensor", "num_bytes"),
    [
        (NewTensor("a", "f32", (3, 5)), 60),
        (NewTensor("a", "bf16", (7,)), 14),
        (NewTensor("a", "q8_0", (3, 64)), 3 * 2 * 34),
        (NewTensor("a", "q4_0", (2, 3, 32)), 6 * 18),
        (NewTensor("a", "f16", (0, 4)), 0),
        (NewTensor("a", "u8", (3, 2, 16)), 96),
        (NewTensor("a", "i32", (3, 5)), 60),
        (NewTensor("a", "i64", (3, 5)), 120),
    ],
)
def test_a_tensor_takes_the_bytes_of_its_format(tensor: NewTensor, num_bytes: int) -> None:
    assert tensor.num_bytes == num_bytes


def test_tensors_are_written_to_their_places_one_after_the_other(tmp_path: Path) -> None:
    contents = {"a": np.arange(3, dtype="<f4"), "b": np.arange(8, dtype="<u2").reshape(4, 2)[:, ::-1]}
    tensors = (NewTensor("a", "f32", (3,)), NewTensor("b", "bf16", (4, 2)))
    path = tmp_path / "weights"

    def read(name: str) -> list[NDArray[np.generic]]:
        """Return the first row of a tensor, then the others."""
        return [contents[name][:1], contents[name][1:]]

    write_header(path, Layout(b"head", (8, 32), 48))
    assert path.read_bytes() == b"head" + bytes(44)
    with path.open("r+b") as file:
        assert list(write_tensors(file, Layout(b"head", (8, 32), 48), tensors, read)) == [*tensors]
    content = path.read_bytes()
    assert content[:4] == b"head"
    assert content[8:20] == contents["a"].tobytes()
    assert content[20:32] == bytes(12)
    assert content[32:] == contents["b"].tobytes()


def test_what_is_there_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        write_header(tmp_path / "weights", Layout(b"", (), 0))
