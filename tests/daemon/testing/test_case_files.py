"""Case files contain their cases at aligned offsets."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from llmd.api import ACTIVATION_DTYPES, PRECISIONS
from llmd.builtin.reference.device import ReferenceDevice
from llmd.models.arithmetic import Arithmetic
from llmd.testing.arithmetic_cases import in_arithmetic
from llmd.testing.case_files import DTYPES, MAGIC, pack, write_case
from llmd.testing.conformance import all_cases

Arrays = dict[str, NDArray[np.generic]]


def unpack(data: bytes) -> Arrays:
    assert data.startswith(MAGIC)
    (count,) = struct.unpack_from("<Q", data, 8)
    at, arrays = 16, {}
    for _ in range(count):
        (length,) = struct.unpack_from("<Q", data, at)
        name = data[at + 8 : at + 8 + length].decode()
        at += 8 + length
        dtype, axes = struct.unpack_from("<QQ", data, at)
        shape = struct.unpack_from(f"<{axes}Q", data, at + 16)
        at += 16 + 8 * axes
        at += -at % 64
        values: NDArray[np.generic] = np.frombuffer(
            data, DTYPES[dtype], int(np.prod(shape)), offset=at
        ).reshape(shape)
        arrays[name] = values
        at += values.nbytes
    assert at == len(data)
    return arrays


def test_arrays_come_back_as_they_were() -> None:
    arrays: Arrays = {
        "a/name with é": np.arange(6, dtype=np.int32).reshape(2, 3),
        "empty": np.zeros((0, 3), np.float32),
        "bits": np.array([True, False]),
    }
    found = unpack(pack(arrays))
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_a_case_holds_the_same_rows_in_every_schedule(tmp_path: Path) -> None:
    case = next(case for case in all_cases() if case.name == "program/window-q8")
    write_case(case, tmp_path / "case")
    arrays = unpack((tmp_path / "case").read_bytes())
    rows: list[dict[tuple[int, int], bytes]] = []
    for j in range(3):
        places = [name for name in arrays if name.startswith(f"schedules/{j}/") and name.endswith("/places")]
        rows.append({})
        for name in places:
            expected = arrays[name.replace("/places", "/expected")]
            rows[j] |= {tuple(p): e.tobytes() for p, e in zip(arrays[name].tolist(), expected, strict=True)}
    assert len(rows[0]) == sum(len(ids) for ids in case.tokens)
    assert rows[0] == rows[1] == rows[2]
    assert {array.dtype.name for name, array in arrays.items() if name.endswith("/codes")} == {"uint8"}


def test_a_case_holds_the_arithmetic_and_the_results_in_it(tmp_path: Path) -> None:
    case = next(case for case in all_cases() if case.name == "linear/q8")
    expected = []
    for arithmetic in (Arithmetic("int8", "f32"), Arithmetic("f16", "f16")):
        write_case(in_arithmetic(case, ReferenceDevice().info, arithmetic), tmp_path / "case")
        arrays = unpack((tmp_path / "case").read_bytes())
        activations, precision = arrays["program/arithmetic"].tolist()
        assert (ACTIVATION_DTYPES[activations], PRECISIONS[precision]) == (
            arithmetic.activations,
            arithmetic.precision,
        )
        assert arrays["program/sizes"][-1] == (arithmetic.activations == "int8")
        expected.append(arrays["schedules/0/0/expected"])
    rounded, half = expected
    assert not np.array_equal(rounded, half)
