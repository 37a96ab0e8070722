"""Compares decoding with reading memory: ``python -m bench.decode_bandwidth [SHAPE] [--layers N]``.

Steps of one row, through scheduler, pager and sampler, alternate with the probe of the machine's limits,
which reads as many bytes as a step on as many threads. The ratio of their rates is the share of the memory's
rate that decoding reaches.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from bench.machine import describe
from bench.probe import Probe, build
from bench.quiet import QuietRounds
from bench.shapes import SHAPES, Shape
from llmd.api import BLOCK_LEN, Format, ModelPlan, Program, TensorRef
from llmd.api.integer_formats import OWN_FORMATS
from llmd.api.messages import StopParams, Submit
from llmd.api.samplers import SamplingParams
from llmd.benchmark.engine_loop import build_core
from llmd.engine.step_reads import KVReads, dense_reads, expert_reads
from llmd.models.lowering import lower
from llmd.models.weight_formats import QUANTIZED_OPS
from llmd.profiling.repeated_source import RepeatedSource
from llmd_backend_cpu.device import CpuDevice

RESULTS = Path(__file__).parent / "results"
CONTEXT_LEN = 1024
PROMPT = 64
THREADS = 2
STEPS = 4
"""Steps of a round: the median counts."""
WARM_UP_S = 4.0
"""Weights that have just been packed are read more slowly for some seconds, at least in a virtual machine."""


class Decoding:
    """One sequence on a model with random weights on the CPU."""

    def __init__(self, shape: Shape, quant: Format, isa: str | None = None) -> None:
        self.device = CpuDevice(isa, THREADS)
        plan, program = plan_of(shape), lower_shape(shape, quant)
        weights = self.device.load(program, RepeatedSource(), lambda _done, _total: None)
        reads = KVReads.of(program.groups, lambda group: weights.kv_bytes(group, "f16"))
        kept = reads.state_bytes + sum(size * min(PROMPT, most or PROMPT) for size, most in reads.per_token)
        experts = sum(one.bytes_read(1) for one in expert_reads(program))
        self.step_bytes = round(dense_reads(program) + experts + kept)
        self._core, _ = build_core(self.device, plan, weights, 1)
        self._vocab, self._asked = program.vocab_size, 0
        self.begin()

    def begin(self) -> None:
        """Begin another sequence in place of the last."""
        self._core.cancel(self._asked)
        self._asked += 1
        prompt = np.random.default_rng(self._asked).integers(0, self._vocab, PROMPT).tolist()
        stop = StopParams(CONTEXT_LEN - PROMPT - BLOCK_LEN)
        self._core.submit(Submit(self._asked, tuple(prompt), SamplingParams(0, 0.0), stop))
        while not self._core.step().tokens:
            pass

    def seconds(self) -> float:
        """Return the seconds of a step, which gives a token."""
        began = time.perf_counter()
        tokens = self._core.step().tokens
        took = time.perf_counter() - began
        assert len(tokens) == 1, "the answer has not ended"
        return took


def plan_of(shape: Shape) -> ModelPlan:
    """Return the plan of a shape's architecture."""
    architecture = importlib.import_module(f"llmd.builtin.architectures.{shape.family}")
    model: ModelPlan = architecture.plan(shape.config(), CONTEXT_LEN)
    return model


def lower_shape(shape: Shape, quant: Format) -> Program:
    """Lower a shape with the matrices that steps multiply by in ``quant``, and other matrices in bf16."""
    model = plan_of(shape)

    def format_of(kind: str, ref: TensorRef) -> Format:
        if not ref.is_matrix:
            return "f32"
        return quant if kind in QUANTIZED_OPS else "bf16"

    return lower(model, 0, len(model.parts), format_of=format_of)


def warm_up(read: Callable[[], object]) -> None:
    """Read weights for `WARM_UP_S`."""
    until = time.perf_counter() + WARM_UP_S
    while time.perf_counter() < until:
        read()


def report(shape: Shape, quant: Format, isa: str | None, rounds: int) -> str:
    """Measure and return the page."""
    decoding = Decoding(shape, quant, isa)
    with tempfile.TemporaryDirectory(prefix="llmd-probe-") as folder:
        probe = Probe(build(Path(folder)), decoding.step_bytes, THREADS)

    def measure(_: int) -> tuple[float, float]:
        return probe.read(), statistics.median(decoding.seconds() for _ in range(STEPS))

    warm_up(decoding.begin)
    quiet = QuietRounds()
    measured = quiet.take("decode", measure, rounds)
    title = f"# Decode against the memory's rate, {shape.name}, {quant}"
    about = f"{describe()}; {decoding.device.info.description}; {datetime.now(UTC):%Y-%m-%d}"
    return "\n".join([title, "", about, "", *table(decoding.step_bytes, measured), "", str(quiet.tally), ""])


def table(step_bytes: int, measured: list[tuple[float, float]]) -> list[str]:
    """Return the lines on rounds: bytes per second of the probe and seconds of a step each."""
    reads, steps = zip(*measured, strict=True)
    shares = sorted(step_bytes / step / read for read, step in measured)
    read, step = statistics.median(reads), statistics.median(steps)
    share = f"**{statistics.median(shares):.2f}** ({shares[0]:.2f}–{shares[-1]:.2f})"
    return [
        f"A step reads {step_bytes / 1e6:.0f} MB, f16 KV, after {PROMPT} tokens; medians of {len(measured)} rounds:",
        "",
        "| read GB/s | decode GB/s | ms a step | share (range) |",
        "|---|---|---|---|",
        f"| {read / 1e9:.1f} | {step_bytes / step / 1e9:.1f} | {step * 1e3:.1f} | {share} |",
    ]


def main() -> None:
    """Measure, print the page and write it to the results."""
    parser = argparse.ArgumentParser(prog="bench.decode_bandwidth")
    parser.add_argument("shape", nargs="?", default="llama-1b", choices=SHAPES)
    parser.add_argument("--layers", type=int, help="in place of those of the shape")
    parser.add_argument("--quant", default="q4", choices=OWN_FORMATS)
    parser.add_argument("--isa", help="an instruction set other than the best")
    parser.add_argument("--rounds", type=int, default=31)
    arguments = parser.parse_args()
    shape = SHAPES[arguments.shape]
    if arguments.layers is not None:
        shape = shape.with_layers(arguments.layers)
    text = report(shape, arguments.quant, arguments.isa, arguments.rounds)
    print(text)
    suffix = "" if arguments.isa is None else f"-{arguments.isa}"
    name = f"{datetime.now(UTC):%Y-%m-%d}-decode-bandwidth-{shape.name}{suffix}.md"
    (RESULTS / name).write_text(text)


if __name__ == "__main__":
    main()
