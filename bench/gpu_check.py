"""``make gpu-check``: the conformance suite and the speed of a card, in one command that needs no network.

The suite runs in several processes, which compile its kernels at the same time. Then a model of a stated
shape with random weights is measured: in each round the rate at which memory is read, one stream, sixteen
streams, and a prompt.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.gpu_model import RandomWeights, Streams, lower_shape
from bench.gpu_report import Figures, Round, Suite, page
from bench.shapes import SHAPES, Shape
from llmd.api import Backend, Device, DeviceOptions, Format
from llmd.models.weight_formats import weight_bytes
from llmd.testing.conformance import cases_for, check_case

RESULTS = Path(__file__).parent / "results"
FORMATS: tuple[Format, ...] = ("q8_g128", "q4_g128_sym")
STREAMS = 16
PROMPT = 512
_MOST_PROCESSES = 16


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
    shape = SHAPES["llama-8b"]
    figures = [measure(device, shape, name, asked.rounds) for name in FORMATS]
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    made = page(date, device.info.description, shape, suite, figures)
    device.close()
    print(made)
    (asked.out or RESULTS / f"{date}-gpu-{asked.device.replace(':', '')}.md").write_text(made)
    sys.exit(bool(suite.failures))


def backend_of(device: str) -> Backend:
    """Return our backend with a device of this name, such as ``cuda:0``.

    Raises:
        SystemExit: there is none.
    """
    if device.partition(":")[0] != "cuda":
        sys.exit(f"gpu-check: no backend of ours has a device {device!r}; name one such as cuda:0")
    from llmd_backend_cuda.plugin import llmd_backends

    return next(iter(llmd_backends()))


def open_device(name: str) -> Device:
    """Open a device of one of our backends.

    Raises:
        SystemExit: it cannot be used; the message says why.
    """
    backend = backend_of(name)
    infos = {info.name: info for info in backend.probe()}
    if name not in infos or not infos[name].score:
        reason = infos[name].reason if name in infos else "it does not exist"
        sys.exit(f"gpu-check: {name} cannot be used: {reason}")
    return backend.open(name, DeviceOptions())


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
    for case in cases_for(device.info)[share::shares]:
        for result in check_case(device, case):
            if result.problem:
                failures.append(f"{result.name}: {result.problem}")
            else:
                passed += 1
    return passed, failures


def measure(device: Device, shape: Shape, name: Format, rounds: int, context_len: int = 4096) -> Figures:
    """Load the shape in a format and measure some rounds, after one that does not count."""
    program = lower_shape(device, shape, name, context_len)
    weights = device.load(program, RandomWeights(), lambda _done, _total: None)
    # A token reads every matrix, but only one row of the table.
    read_bytes = sum(weight_bytes(weight) for weight in program.weights if weight.format == name)
    streams = Streams(weights, STREAMS, context_len, max_rows=PROMPT)
    try:
        _round(device, streams)
        done = [_round(device, streams) for _ in range(rounds)]
    finally:
        streams.close()
        weights.close()
    return Figures(name, read_bytes, done)


def _round(device: Device, streams: Streams, steps: int = 100) -> Round:
    read = device.read_rate(0.5)
    prefill_s = statistics.median(streams.prefill(sequence, PROMPT) for sequence in range(STREAMS))
    one_s = streams.decode(1, steps)
    many_s = streams.decode(STREAMS, steps)
    return Round(read, one_s, many_s, prefill_s)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_check", description=__doc__)
    parser.add_argument("--device", default="cuda:0", help="the card (default: cuda:0)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count (default: 5)")
    parser.add_argument("--out", type=Path, help="where the page is written (default: bench/results)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
