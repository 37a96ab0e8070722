"""Tests of the functions of gpu.cuh on the host: warps, float16 and copies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api.errors import DeviceError
from tests.cuda.simt.bench import Array, Bench, kernel
from tests.cuda.simt.build import compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs g++")


@pytest.fixture(params=["forward", "reverse", 1, 2], ids=str)
def ordered(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """Return a bench for each kind of order."""
    return Bench(tmp_path, order=request.param)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


LANES = np.arange(32)


CALLS = {
    "shuffle_xor(value, 5)": LANES ^ 5,
    "shuffle(value, 31 - lane_index())": 31 - LANES,
    "shuffle(value, 3)": LANES * 0 + 3,
    "shuffle_up(value, 4)": np.where(LANES < 4, LANES, LANES - 4),
}
XOR, ANY, UP = (
    ["shuffle_xor(value, 5)"],
    [call for call in CALLS if call.startswith("shuffle(")],
    ["shuffle_up(value, 4)"],
)


@pytest.mark.parametrize(
    ("cpp", "dtype", "calls"),
    [
        ("float", np.float32, XOR + ANY + UP),
        ("u32", np.uint32, XOR + ANY + UP),
        ("i32", np.int32, XOR + ANY),
        ("u64", np.uint64, XOR),
        ("double", np.float64, XOR + UP),
    ],
)
def test_shuffles(bench: Bench, cpp: str, dtype: type[np.generic], calls: list[str]) -> None:
    """Each call gives a row of the output; two warps do not mix."""
    inputs: Array = (np.random.default_rng(1).random(64) * 2**30).astype(dtype)
    output = np.zeros((len(calls), 64), dtype)
    statements = f"const {cpp} value = ((const {cpp}*)args.in)[thread_index()];\n"
    for row, call in enumerate(calls):
        statements += f"(({cpp}*)args.out)[{row * 64} + thread_index()] = {call};\n"
    bench.run(kernel(statements), inputs, output, threads=64)
    for row, call in enumerate(calls):
        np.testing.assert_array_equal(output[row], inputs.reshape(2, 32)[:, CALLS[call]].ravel())


def test_ballot_and_bit_functions(bench: Bench) -> None:
    statements = """
    u32* out = (u32*)args.out;
    const u32 word = ballot(lane_index() % 3 == 0);
    out[0] = word;
    out[1] = count_bits(word);
    out[2] = leading_zeros(word >> 4);
    out[3] = leading_zeros(0);
    out[4] = high_product(word, 0xfffffff0u);
    out[5] = pick_bytes(0x33221100u, 0x77665544u, 0x6210);
    out[6] = bits_of(float_of(0x3fc00000u) * 2.0f);
    out[7] = pick_bytes_or_signs(0x83228100u, 0x77669544u, 0xffffdb92u);
    """
    output = np.zeros(8, np.uint32)
    bench.run(kernel(statements), None, output)
    word = sum(1 << lane for lane in range(0, 32, 3))
    expected = [
        word,
        11,
        32 - (word >> 4).bit_length(),
        32,
        word * 0xFFFFFFF0 >> 32,
        0x66221100,
        0x40400000,
        0xFFFFFF22,
    ]
    assert output.tolist() == expected


def test_dot4(bench: Bench) -> None:
    inputs = np.random.default_rng(1).integers(-128, 128, (2, 32, 4)).astype(np.int8)
    output = np.zeros(32, np.int32)
    statements = """
    const u32* words = (const u32*)args.in;
    ((i32*)args.out)[thread_index()] = dot4(words[thread_index()], words[32 + thread_index()], -7);
    """
    bench.run(kernel(statements), inputs, output)
    np.testing.assert_array_equal(output, inputs.astype(np.int32).prod(axis=0).sum(axis=-1) - 7)


def test_load_matrices(bench: Bench) -> None:
    """Rows are far from each other in shared memory; the columns of a lane are two halves of a row."""
    statements = """
    SHARED alignas(16) u16 rows[32][24];
    for (int i = 0; i < 8; ++i) rows[lane_index()][i] = ((const u16*)args.in)[lane_index() * 8 + i];
    warp_barrier();
    u32 words[4];
    load_matrices(words, rows[lane_index()]);
    for (int i = 0; i < 4; ++i) ((u32*)args.out)[lane_index() * 4 + i] = words[i];
    """
    inputs = np.arange(256, dtype=np.uint16)
    output = np.zeros((32, 4, 2), np.uint16)
    bench.run(kernel(statements), inputs, output)
    matrices = inputs.reshape(4, 8, 8)
    for lane in range(32):
        column = lane % 4 * 2
        np.testing.assert_array_equal(output[lane], matrices[:, lane // 4, column : column + 2])


TILE = """
const u16* a = (const u16*)args.in;
const u16* b = a + 256;
const int g = lane_index() / 4, t = lane_index() % 4 * 2;
u32 a_words[4], b_words[2];
for (int i = 0; i < 4; ++i) a_words[i] = *(const u32*)(a + (g + i % 2 * 8) * 16 + t + i / 2 * 8);
for (int i = 0; i < 2; ++i) b_words[i] = b[(t + i * 8) * 8 + g] | (u32)b[(t + i * 8 + 1) * 8 + g] << 16;
float sums[4] = {1.0f, 2.0f, 3.0f, 4.0f};
multiply_tile(sums, a_words, b_words);
multiply_tile(sums, a_words, b_words);
float* out = (float*)args.out;
for (int i = 0; i < 4; ++i) out[(g + i / 2 * 8) * 8 + t + i % 2] = sums[i];
"""


def test_multiply_tile(ordered: Bench) -> None:
    random = np.random.default_rng(1)
    a, b = (
        random.standard_normal((16, 16)).astype(np.float16),
        random.standard_normal((16, 8)).astype(np.float16),
    )
    output = np.zeros((16, 8), np.float32)
    ordered.run(kernel(TILE), np.concatenate([a.ravel(), b.ravel()]), output)
    start = np.array([[1.0, 2.0], [3.0, 4.0]])[np.arange(16) // 8][:, np.arange(8) % 2]
    np.testing.assert_allclose(
        output, start + 2 * a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-5
    )


INTEGER_TILE = """
const i8* a = (const i8*)args.in;
const i8* b = a + 512;
const int g = lane_index() / 4, t = lane_index() % 4;
u32 a_words[4], b_words[2];
for (int i = 0; i < 4; ++i) a_words[i] = *(const u32*)(a + (g + i % 2 * 8) * 32 + 4 * t + i / 2 * 16);
for (int i = 0; i < 2; ++i) b_words[i] = *(const u32*)(b + g * 32 + 4 * t + i * 16);
i32 sums[4] = {1, 2, 3, 4};
multiply_tile(sums, a_words, b_words);
multiply_tile(sums, a_words, b_words);
i32* out = (i32*)args.out;
for (int i = 0; i < 4; ++i) out[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sums[i];
"""


def test_multiply_integer_tile(ordered: Bench) -> None:
    random = np.random.default_rng(1)
    a, b = (random.integers(-128, 128, (rows, 32)).astype(np.int8) for rows in (16, 8))
    output = np.zeros((16, 8), np.int32)
    ordered.run(kernel(INTEGER_TILE), np.concatenate([a.ravel(), b.ravel()]), output)
    start = np.array([[1, 2], [3, 4]])[np.arange(16) // 8][:, np.arange(8) % 2]
    np.testing.assert_array_equal(output, start + 2 * a.astype(np.int32) @ b.astype(np.int32).T)


def test_all_halves_convert_to_float_and_back(bench: Bench) -> None:
    statements = """
    const int i = block_x() * num_threads() + thread_index();
    const half2 both = to_half2(from_half(i), second_of((u32)i << 16));
    ((Words2*)args.out)[i] = {bits_of(from_half(i)), both};
    """
    output = np.zeros((65536, 2), np.uint32)
    bench.run(kernel(statements), None, output, threads=256, blocks=256)
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    finite = np.isfinite(halves)
    np.testing.assert_array_equal(output[:, 0].view(np.float32), halves.astype(np.float32))
    bits = np.arange(65536, dtype=np.uint32)
    np.testing.assert_array_equal(output[finite, 1], (bits | bits << 16)[finite])
    infinite = np.isinf(halves)
    np.testing.assert_array_equal(output[infinite, 1], [0x7BFF7BFF, 0xFBFFFBFF])


def test_float_to_half_rounds_and_saturates(bench: Bench) -> None:
    random = np.random.default_rng(1)
    floats = random.integers(0, 2**32, 1 << 16, dtype=np.uint32).view(np.float32)
    usual = (random.standard_normal(1 << 16) * 2.0 ** random.integers(-26, 17, 1 << 16)).astype(np.float32)
    halves = np.arange(0x7BFF, dtype=np.uint16).view(np.float16).astype(np.float64)
    ties = ((halves + np.concatenate([halves[1:], [65504.0]])) / 2).astype(np.float32)
    edges = np.array([65504, 65519, 65520, 1e9, -1e9, np.inf, -np.inf, 0.0, -0.0], np.float32)
    inputs = np.concatenate([floats[np.isfinite(floats)], usual, ties, -ties, edges])
    output = np.zeros(len(inputs), np.uint16)
    statements = """
    for (int i = block_x() * num_threads() + thread_index(); i < args.count; i += grid_x() * num_threads()) {
      ((u16*)args.out)[i] = to_half(((const float*)args.in)[i]);
    }
    """
    bench.run(kernel(statements), inputs, output, threads=256, blocks=4, count=len(inputs))
    np.testing.assert_array_equal(output, np.clip(inputs, -65504, 65504).astype(np.float16).view(np.uint16))


HALF_ARITHMETIC = """
const u16* a = (const u16*)args.in;
const int n = args.count;
for (int i = thread_index(); i < n; i += num_threads()) {
  const half2 x = a[i] | (u32)a[n - 1 - i] << 16, y = twice(a[n + i]), z = twice(a[2 * n + i]);
  Words4* out = (Words4*)args.out;
  out[i] = {add(x, y), subtract(x, y), multiply(x, y), multiply_add(x, y, z)};
}
"""


def _random_halves(count: int) -> NDArray[np.float16]:
    """Return numbers that are often of similar size, so that sums cancel and results are subnormal."""
    random = np.random.default_rng(1)
    numbers = random.standard_normal((3, count)) * 2.0 ** random.integers(-12, 8, (3, count))
    numbers[2, ::2] = -numbers[0, ::2] * numbers[1, ::2] * (1 + random.integers(-2, 3, count // 2) * 2.0**-11)
    return np.clip(numbers, -65504, 65504).astype(np.float16)


def test_half_arithmetic_rounds_once(bench: Bench) -> None:
    inputs = _random_halves(4096)
    output = np.zeros((4096, 4, 2), np.float16)
    bench.run(kernel(HALF_ARITHMETIC), inputs, output, threads=64, count=4096)
    x = np.stack([inputs[0], inputs[0][::-1]], axis=1).astype(np.longdouble)
    y, z = (inputs[1][:, None].astype(np.longdouble), inputs[2][:, None].astype(np.longdouble))
    # A long double holds each result exactly, so that there is one rounding in the conversion.
    for index, exact in enumerate([x + y, x - y, x * y, x * y + z]):
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(output[:, index], exact.astype(np.float16))


COPY = """
SHARED alignas(16) float tile[32][4];
copy_16(tile[thread_index()], (const float*)args.in + thread_index() * 4);
{commit}
{wait}
block_barrier();
((Words4*)args.out)[thread_index()] = *(const Words4*)tile[31 - thread_index()];
{end}
"""


def _copied(bench: Bench, **parts: str) -> NDArray[np.float32]:
    inputs = np.arange(128, dtype=np.float32).reshape(32, 4)
    output = np.zeros_like(inputs)
    body = COPY
    for name in ("commit", "wait", "end"):
        body = body.replace(f"{{{name}}}", parts.get(name, ""))
    bench.run(kernel(body), inputs, output)
    return output[::-1]


def test_copies_arrive_when_waited_for(bench: Bench) -> None:
    output = _copied(bench, commit="commit_copies();", wait="wait_for_copies<0>();")
    np.testing.assert_array_equal(output.ravel(), np.arange(128))


@pytest.mark.parametrize("wait", ["", "wait_for_copies<1>();"])
def test_copies_do_not_arrive_earlier(bench: Bench, wait: str) -> None:
    output = _copied(
        bench, commit="commit_copies();", wait=wait, end="block_barrier(); wait_for_copies<0>();"
    )
    assert np.isnan(output).all()


@pytest.mark.parametrize(
    "parts",
    [
        {"commit": "commit_copies();"},
        {"wait": "wait_for_copies<0>();"},
        {"commit": "commit_copies();", "wait": "wait_for_copies<1>();"},
    ],
    ids=str,
)
def test_copies_that_were_never_waited_for_are_found(bench: Bench, parts: dict[str, str]) -> None:
    with pytest.raises(
        DeviceError, match=r"kernel test, .*thread \d+ did not wait for what it began at test0.cu:\d+"
    ):
        _copied(bench, **parts)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("copy_16((u8*)tile + 4, args.in);", "not both aligned"),
        ("copy_16(args.out, args.in);", "not shared memory"),
        ("u32 w[4]; load_matrices(w, args.in);", "not shared memory"),
        ("read_once_8((const u8*)args.in + 4);", "not aligned to 8"),
        ("read_once(tile);", "shared memory"),
        ("pick_bytes(1, 2, 8);", "pick_bytes chooses"),
    ],
)
def test_misused_functions_are_found(bench: Bench, call: str, message: str) -> None:
    statements = f"SHARED alignas(16) float tile[8]; tile[0] = 0; {call}"
    with pytest.raises(DeviceError, match=rf"kernel test, .*test0.cu:\d+, thread \d+: .*{message}"):
        bench.run(kernel(statements), np.zeros(8, np.float32), np.zeros(8, np.float32))
