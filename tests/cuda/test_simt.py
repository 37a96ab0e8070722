"""Tests of the engine that runs CUDA kernels on the host: threads, barriers and memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llmd.api.errors import DeviceError, MemoryBudgetError
from tests.cuda.simt.bench import Bench, kernel
from tests.cuda.simt.build import compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs g++")


@pytest.fixture(params=["forward", "reverse", 1, 2], ids=str)
def ordered(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """Return a bench for each kind of order."""
    return Bench(tmp_path, order=request.param)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_threads_blocks_and_barriers(ordered: Bench) -> None:
    """Each block reverses its part through shared memory."""
    body = kernel("""
      SHARED i32 values[96];
      const i32* in = (const i32*)args.in + block_x() * num_threads();
      i32* out = (i32*)args.out + block_x() * num_threads();
      values[thread_index()] = in[thread_index()];
      block_barrier();
      out[thread_index()] = values[num_threads() - 1 - thread_index()] + grid_x();
    """)
    inputs = np.arange(96 * 7, dtype=np.int32)
    output = np.zeros_like(inputs)
    ordered.run(body, inputs, output, threads=96, blocks=7)
    np.testing.assert_array_equal(output, inputs.reshape(7, 96)[:, ::-1].ravel() + 7)


def test_block_sum_of_shared_helpers(ordered: Bench) -> None:
    body = kernel("""
      SHARED float sums[4];
      const float total = block_sum(((const float*)args.in)[thread_index()], sums);
      ((float*)args.out)[thread_index()] = total;
    """)
    inputs = np.random.default_rng(1).integers(-99, 99, 128).astype(np.float32)
    output = np.zeros_like(inputs)
    ordered.run(body, inputs, output, threads=128)
    assert set(output) == {inputs.sum()}


def test_all_threads_of_a_large_block(bench: Bench) -> None:
    output = np.zeros(1024, np.int32)
    bench.run(
        kernel("((i32*)args.out)[thread_index()] = warp_index() * 100 + lane_index();"),
        None,
        output,
        threads=1024,
    )
    np.testing.assert_array_equal(output, np.arange(1024) // 32 * 100 + np.arange(1024) % 32)


def test_missing_barrier_gives_different_results_in_some_orders(tmp_path: Path) -> None:
    body = kernel("""
      SHARED i32 value;
      if (thread_index() == 0) value = 7;
      ((i32*)args.out)[thread_index()] = value;
    """)
    results = []
    for order in ("forward", "reverse"):
        output = np.zeros(64, np.int32)
        Bench(tmp_path, order=order).run(body, None, output, threads=64)
        results.append(set(output.tolist()))
    assert results == [{7}, {7, -1}]


ENDS = "if (warp_index() == 1) return; block_barrier();"
OTHER_BARRIER = """
if (warp_index() == 1) block_barrier();
else
  block_barrier();
"""


@pytest.mark.parametrize(
    ("statements", "other"), [(ENDS, "has ended"), (OTHER_BARRIER, "waits in block_barrier")]
)
def test_divergent_barrier_is_found(ordered: Bench, statements: str, other: str) -> None:
    with pytest.raises(
        DeviceError, match=rf"kernel test, block \(0, 0, 0\): divergent barrier: .* test0.cu:\d+.*{other}"
    ):
        ordered.run(kernel(statements), None, np.zeros(4, np.int32), threads=64)


@pytest.mark.parametrize(
    "statements",
    [
        "if (lane_index() == 5) return; warp_barrier();",
        "if (lane_index() < 5) ballot(true); else block_barrier();",
        "if (lane_index() < 5) ballot(true);\nelse ballot(false);",
        "if (lane_index() < 5) shuffle(1.0f, 0); else warp_barrier();",
    ],
)
def test_missing_lane_is_found(ordered: Bench, statements: str) -> None:
    with pytest.raises(DeviceError, match=r"kernel test, block .*(missing lane|while other lanes wait)"):
        ordered.run(kernel(statements), None, np.zeros(4, np.int32), threads=64)


@pytest.mark.parametrize(
    ("shared", "shared_bytes"),
    [("SHARED float values[64];", 0), ("DYNAMIC_SHARED(bytes); float* values = (float*)bytes;", 256)],
)
def test_shared_memory_is_undefined_at_first(bench: Bench, shared: str, shared_bytes: int) -> None:
    statements = f"""
    {shared}
    const float before = values[thread_index()];
    values[thread_index()] = 1.0f;
    ((float*)args.out)[block_x() * num_threads() + thread_index()] = before;
    """
    output = np.zeros(3 * 64, np.float32)
    bench.run(kernel(statements), None, output, threads=64, blocks=3, shared_bytes=shared_bytes)
    assert np.isnan(output).all()


def test_memory_is_undefined_at_first(bench: Bench) -> None:
    memory = bench.runtime.allocate(100)
    output = np.zeros(25, np.float32)
    bench.runtime.download(output, memory, 0)
    assert np.isnan(output).all()


@pytest.mark.parametrize("num_bytes", [256, 4096, 256 * 33, 1 << 20])
def test_memory_is_aligned(bench: Bench, num_bytes: int) -> None:
    assert bench.runtime.allocate(num_bytes).pointer % 256 == 0


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "((float*)args.out)[64] = 1.0f;",
            r"accessed 0x\w+, 0 bytes behind a memory of 256 bytes.*\(test0.cu:\d+",
        ),
        ("((float*)args.out)[0] = ((const float*)args.in)[70];", r"24 bytes behind a memory of 256 bytes"),
        ("((float*)args.out)[-1024] = 1.0f;", r"before a memory of 256 bytes"),
        ("((u8*)args.out)[-1] = 1;", "a write beside a memory of 256 bytes"),
        ("*(float*)(u64)args.count = 1.0f;", "accessed 0x0"),
        (
            "DYNAMIC_SHARED(bytes); bytes[100 + 28] = 1;",
            "0 bytes behind the dynamic shared memory of 128 bytes",
        ),
        ("DYNAMIC_SHARED(bytes); bytes[-1] = 1;", "beyond the dynamic shared memory"),
        ("SHARED i32 x[4]; x[args.count + 4] = 1;", "test0.cu.* index 4 is outside the array"),
        (
            "i32 x[4]; x[args.count + 4] = 1; ((i32*)args.out)[0] = x[args.count];",
            "index 4 is outside the array",
        ),
        ("*(u32*)((u8*)args.out + 2) = 1;", "not aligned to 4 bytes"),
        ("((i32*)args.out)[0] = 1 << (args.count + 32);", "shift by 32 bits"),
        ("((i32*)args.out)[0] = 0x7fffffff + (1 - args.count);", "sum overflows"),
        ("((i32*)args.out)[0] = 5 / args.count;", "division by zero"),
    ],
)
def test_undefined_accesses_are_found(bench: Bench, statement: str, message: str) -> None:
    with pytest.raises(DeviceError, match=f"kernel test, .*{message}"):
        bench.run(kernel(statement), np.zeros(64, np.float32), np.zeros(64, np.float32), shared_bytes=128)
    test_block_sum_of_shared_helpers(bench)


def test_full_stack_is_found(bench: Bench) -> None:
    before = """
    __attribute__((noinline)) u64 deep(volatile u64* at, int depth) {
      volatile u64 place[64];
      place[depth % 64] = *at;
      return depth ? deep(place, depth - 1) + place[1] : place[0];
    }
    """
    statement = "volatile u64 start = 0; ((u64*)args.out)[thread_index()] = deep(&start, 1000 + args.count);"
    with pytest.raises(DeviceError, match=r"kernel test, .*the stack of thread \d+ is full"):
        bench.run(kernel(statement, before), None, np.zeros(32, np.uint64))


def test_endless_loop_is_found(tmp_path: Path) -> None:
    bench = Bench(tmp_path, limit_s=0.2)
    with pytest.raises(DeviceError, match=r"kernel test, .*thread \d+ still runs after 0.2 s"):
        bench.run(
            kernel("while (args.count == *(volatile i32*)args.in) {}"), np.zeros(4, np.int32), np.zeros(4)
        )


def test_memory_budget(tmp_path: Path) -> None:
    runtime = Bench(tmp_path, memory_bytes=1000).runtime
    first = runtime.allocate(600)
    with pytest.raises(MemoryBudgetError, match="400 are free"):
        runtime.allocate(401)
    del first
    assert runtime.free_bytes() == 1000
