"""``make gpu-check``: the conformance suite and the speed of a card, in one command that needs no network.

The suite runs in several processes, which compile its kernels at the same time. Then a model of a stated
shape with random weights is measured. Each round has the rate at which memory is read, a prompt, one stream
and several; then the same through the engine, and the share of its steps in which the card waits for the
host. cuBLAS is measured once, if it is installed.

With ``--device shim``, the kernels run on the host, thread by thread, in a small shape: nothing is measured,
but all of this runs on a machine without a card.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from bench import cublas
from bench.gpu_engine import Served
from bench.gpu_model import RandomWeights, Streams, lower_shape, plan_of
from bench.gpu_report import Figures, Round, Sizes, Suite, page
from bench.shapes import SHAPES, Shape
from llmd.api import BLOCK_LEN, HOST_MEMORY, Backend, Device, DeviceInfo, DeviceOptions, Format
from llmd.engine.steps.step_trace import Tracer
from llmd.testing.conformance import cases_for, check_case
from llmd.testing.trial import small_cases
from llmd.testing.workload import Workload

RESULTS = Path(__file__).parent / "results"
FORMATS: tuple[Format, ...] = ("q8_g128", "q4_g128_sym")
KINDS = ("cuda", "vulkan")
SHIM = "shim"
"""The device whose kernels run on the host."""
SHIM_MEMORY_BYTES = 64 << 20
_MOST_PROCESSES = 16

CARD_SIZES = Sizes(SHAPES["llama-8b"])
SHIM_SIZES = Sizes(
    Shape("tiny", 128, 1, 4, 2, 32, 256, 300, tied=False, context=64),
    streams=2, prompt=20, answer=4, steps=3, context=64, read_s=0.0, is_real=False,
)  # fmt: skip


def main() -> None:
    """Check and measure a card, print the page, and save it with the other results."""
    asked = _arguments()
    sys.path[:0] = [str(path) for path in Path("plugins").glob("*/src")]
    open_device(asked.device).close()  # else every process would say that it cannot be used
    suite = run_suite(asked.device)
    print(
        f"conformance: {suite.passed} passed, {len(suite.failures)} failed, {suite.seconds:.0f} s", flush=True
    )
    for failure in suite.failures:
        print(f"  {failure}")
    device = open_device(asked.device)
    sizes = CARD_SIZES if is_card(asked.device, device.info) else SHIM_SIZES
    rounds = asked.rounds if sizes.is_real else 1
    figures = [measure(device, sizes, name, rounds) for name in FORMATS]
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    title = "CUDA kernels on the host" if asked.device == SHIM else device.info.description
    made = page(date, title, sizes, suite, figures, *peer_s(asked.device, sizes))
    device.close()
    print(made)
    if out := asked.out or (result_of(asked.device, date) if sizes.is_real else None):
        out.write_text(made)
    sys.exit(bool(suite.failures))


def is_card(device: str, info: DeviceInfo) -> bool:
    """Whether a device has a memory of its own; others, such as lavapipe, stand in for a card."""
    return device != SHIM and info.memory_id != HOST_MEMORY


def result_of(device: str, date: str) -> Path:
    """Return where the page of a card is saved by default."""
    return RESULTS / f"{date}-gpu-{device.replace(':', '')}.md"


def backend_of(device: str) -> Backend:
    """Return our backend with a device of this name, such as ``cuda:0`` or ``vulkan:0``.

    Raises:
        SystemExit: there is none.
    """
    kind = device.partition(":")[0]
    if kind not in KINDS:
        sys.exit(f"gpu-check: no backend of ours has a device {device!r}; name one such as cuda:0, or {SHIM}")
    plugin = importlib.import_module(f"llmd_backend_{kind}.plugin")
    (backend,) = plugin.llmd_backends()
    assert isinstance(backend, Backend)
    return backend


def open_device(name: str) -> Device:
    """Open a device of one of our backends, or the one whose kernels run on the host.

    Raises:
        SystemExit: it cannot be used; the message says why.
    """
    if name == SHIM:
        return open_shim()
    backend = backend_of(name)
    infos = {info.name: info for info in backend.probe()}
    if name not in infos or not infos[name].score:
        reason = infos[name].reason if name in infos else "it does not exist"
        sys.exit(f"gpu-check: {name} cannot be used: {reason}")
    return backend.open(name, DeviceOptions())


def open_shim() -> Device:
    """Return the CUDA backend with kernels that run on the host.

    Raises:
        SystemExit: there is no compiler for them.
    """
    from tests.cuda.simt.build import compiler
    from tests.cuda.simulated import SimulatedCard
    from tests.cuda.simulated import open_device as on_the_host

    if compiler() is None:
        sys.exit(f"gpu-check: {SHIM} cannot be used: there is no g++ to compile kernels for this machine")
    return on_the_host(SimulatedCard(memory_bytes=SHIM_MEMORY_BYTES))


def run_suite(name: str) -> Suite:
    """Run all cases that the device must pass."""
    start_s = time.monotonic()
    spawned = multiprocessing.get_context("spawn")
    count = min(_MOST_PROCESSES, os.cpu_count() or 1)
    with spawned.Pool(count) as pool:
        parts = pool.starmap(run_cases, [(name, share, count, list(sys.path)) for share in range(count)])
    passed = sum(part[0] for part in parts)
    return Suite(passed, [failure for part in parts for failure in part[1]], time.monotonic() - start_s)


def run_cases(name: str, share: int, shares: int, path: Sequence[str]) -> tuple[int, list[str]]:
    """Run one of ``shares`` parts of the cases; return (checks that passed, what failed)."""
    sys.path[:] = path
    device = open_device(name)
    passed, failures = 0, []
    for case in cases_of(name, device.info)[share::shares]:
        for result in check_case(device, case):
            if result.problem:
                failures.append(f"{result.name}: {result.problem}")
            else:
                passed += 1
    return passed, failures


def cases_of(name: str, info: DeviceInfo) -> Sequence[Workload]:
    """Return the cases of a device: all of a card, else a few small ones and those for draws and times.

    `make test-full` runs all on the host.
    """
    if is_card(name, info):
        return cases_for(info)
    every = cases_for(info)
    return (*small_cases(info), *(case for case in every if case.draws or case.times_steps))


def measure(device: Device, sizes: Sizes, name: Format, rounds: int) -> Figures:
    """Load the shape in a format and measure some rounds, after one that does not count."""
    program = lower_shape(device, sizes.shape, name, sizes.context)
    # A token reads every matrix, but only one row of the table.
    read_bytes = sum(weight.num_bytes for weight in program.weights if weight.format == name)
    num_blocks = 1 - (-(sizes.prompt + sizes.answer) // BLOCK_LEN)
    plan = plan_of(sizes.shape, num_blocks * BLOCK_LEN)
    with ExitStack() as stack:
        weights = device.load(program, RandomWeights(), lambda _done, _total: None)
        stack.callback(weights.close)
        streams = Streams(weights, sizes.streams, sizes.context, max_rows=sizes.prompt)
        stack.callback(streams.close)
        served = Served(device, plan, weights, sizes.streams)
        stack.callback(served.close)
        traced = Served(device, plan, weights, sizes.streams, Tracer())
        stack.callback(traced.close)
        done = [_round(device, streams, served, traced, sizes) for _ in range(1 + rounds)]
    return Figures(name, read_bytes, done[1:])


def peer_s(device: str, sizes: Sizes) -> tuple[float | None, str]:
    """Return how long cuBLAS takes for the products of a prompt, or None and why it was not measured."""
    if not sizes.is_real:
        return None, "it needs a card"
    try:
        api, blas = cublas.load()
    except cublas.MissingLibraryError as error:
        return None, f"it is not installed ({error})"
    return cublas.prompt_s(sizes.shape, sizes.prompt, int(device.partition(":")[2] or 0), api, blas), ""


def _round(device: Device, streams: Streams, served: Served, traced: Served, sizes: Sizes) -> Round:
    many, lengths = sizes.streams, (sizes.prompt, sizes.answer)
    return Round(
        read_bytes_per_s=device.read_rate(sizes.read_s),
        prefill_s=statistics.median(streams.prefill(sequence, sizes.prompt) for sequence in range(many)),
        one_s=streams.decode(1, sizes.steps),
        many_s=streams.decode(many, sizes.steps),
        engine_one=served.answer(1, *lengths),
        engine_many=served.answer(many, *lengths),
        host_one=traced.host_share(1, *lengths),
        host_many=traced.host_share(many, *lengths),
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_check", description=__doc__)
    parser.add_argument(
        "--device", default="cuda:0", help=f"the card (default: cuda:0); {SHIM}: kernels on the host"
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count (default: 5)")
    parser.add_argument("--out", type=Path, help="where the page is written (default: bench/results)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
