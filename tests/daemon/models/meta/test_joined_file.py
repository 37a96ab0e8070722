from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api.errors import CheckpointError
from llmd.models.meta.joined_file import open_joined
from llmd.models.meta.weight_files import find_weights
from llmd.models.safetensors import SafetensorsFile
from tests.corrupt.untouchable import map_untouchable
from tests.golden.checkpoint import write_safetensors

WHOLE: dict[str, NDArray[Any]] = {
    "tok_embeddings.weight": np.arange(24, dtype=np.float32).reshape(6, 4),
    "layers.0.attention.wq.weight": np.arange(16, dtype=np.float16).reshape(4, 4),
    "layers.0.attention.wo.weight": np.arange(16, dtype=np.float32).reshape(4, 4),
    "norm.weight": np.arange(4, dtype=np.float32),
}
AXES = {"tok_embeddings.weight": 0, "layers.0.attention.wq.weight": 0, "layers.0.attention.wo.weight": 1}


def write(directory: Path, axes: dict[str, int] = AXES, second: dict[str, Any] | None = None) -> None:
    for number in range(2):
        pieces: dict[str, Any] = {
            name: np.split(array, 2, axes[name])[number] if name in axes else array
            for name, array in WHOLE.items()
        }
        if number and second is not None:
            pieces = {name: array for name, array in (pieces | second).items() if array is not None}
        write_safetensors(directory / f"consolidated.{number:02}.safetensors", pieces, {})


@pytest.mark.parametrize("embedding_axis", [0, 1])
def test_pieces_are_joined_along_the_axis_that_was_cut(tmp_path: Path, embedding_axis: int) -> None:
    write(tmp_path, AXES | {"tok_embeddings.weight": embedding_axis})
    with open_joined(find_weights(tmp_path)[0]) as checkpoint:
        assert checkpoint.tensors.keys() == WHOLE.keys()
        for name, array in WHOLE.items():
            assert checkpoint.tensors[name].shape == array.shape
            assert checkpoint.tensors[name].size_bytes == array.nbytes
            assert np.array_equal(checkpoint.view(name), array)
            assert checkpoint.view(name).dtype == array.dtype


def test_opening_reads_no_weight(tmp_path: Path) -> None:
    write(tmp_path)
    with open_joined(find_weights(tmp_path)[0], mapper=map_untouchable) as checkpoint:
        assert checkpoint.num_parameters == sum(array.size for array in WHOLE.values())


def test_a_tensor_is_fetched_from_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)
    fetched: list[tuple[str, str]] = []
    monkeypatch.setattr(SafetensorsFile, "fetch", lambda file, name: fetched.append((file.path.name, name)))
    with open_joined(find_weights(tmp_path)[0]) as checkpoint:
        checkpoint.fetch("norm.weight")
    assert fetched == [(f"consolidated.{number:02}.safetensors", "norm.weight") for number in range(2)]


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ({"norm.weight": None}, r"is missing, in consolidated.00.safetensors F32 \[4\]"),
        ({"norm.weight": np.zeros(4, np.float16)}, r"is F16 \[4\], in consolidated.00.safetensors F32 \[4\]"),
        ({"norm.weight": np.zeros(5, np.float32)}, r"is F32 \[5\]"),
        ({"more.weight": np.zeros(5, np.float32)}, r"in consolidated.00.safetensors missing"),
    ],
)
def test_pieces_that_do_not_belong_together_are_named(
    tmp_path: Path, second: dict[str, Any], reason: str
) -> None:
    write(tmp_path, second=second)
    with pytest.raises(CheckpointError, match=reason) as caught:
        open_joined(find_weights(tmp_path)[0])
    assert caught.value.file == str(tmp_path / "consolidated.01.safetensors")
    assert caught.value.tensor == next(iter(second))
