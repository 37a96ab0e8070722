"""Compares what llmd predicts of devices with what it measures there: ``python -m bench.placement [SHAPE]``.

In each round, the CPU backend is measured as at the first start, and a request runs on a loaded model. What
the measured rates predict for the request is divided by what it took. Then the same for models on other
devices, and on several (`bench.placement_machine`).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench.checkpoint import checkpoint_directory, write_checkpoint
from bench.machine import describe
from bench.placement_machine import SETUPS, Machine, Outcome, Setup
from bench.publication import publish
from bench.quiet import DisturbedError, QuietRounds
from bench.shapes import SHAPES, Shape
from llmd.api.device import Device, DeviceProfile
from llmd.api.messages import Load
from llmd.api.tensors import Format
from llmd.benchmark.timed_requests import time_requests
from llmd.engine.composition import make_host
from llmd.engine.loading import LoadedModel, load_model
from llmd.engine.placement.candidates import Candidate
from llmd.engine.placement.default_quant import with_default_quant
from llmd.engine.placement.model_problem import ModelOnDevices
from llmd.engine.placement.typical_request import TYPICAL, Request
from llmd.host.benchmarks import FULL
from llmd.models.open_model import open_model
from llmd.placement.problem import cost_of
from llmd.profiling.profile import full_profile
from llmd_backend_cpu.device import CpuDevice

FORMATS: tuple[Format | None, ...] = (None, "q8", "q4")
"""None: the weights as they are stored, bf16."""
MEMORY_BYTES = 1 << 40


class Round(msgspec.Struct, frozen=True):
    """Predicted seconds divided by measured ones, and how long the device was measured."""

    prompt: float
    answer: float
    profile_s: float


class SharedRound(msgspec.Struct, frozen=True):
    """A round of all setups."""

    profile_s: dict[str, float]
    """Seconds of measuring each device."""
    outcomes: dict[str, Outcome]
    """By the name of the setup."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.placement")
    parser.add_argument("shape", nargs="?", default="llama-1b", choices=SHAPES)
    parser.add_argument("--layers", type=int, default=4, help="use only this many layers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--shared-shape", default="llama-100m", choices=SHAPES, help="of models on several devices"
    )
    parser.add_argument("--shared-layers", type=int, default=4)
    arguments = parser.parse_args()
    shape = SHAPES[arguments.shape].with_layers(arguments.layers)
    directory = write_checkpoint(shape, checkpoint_directory(shape))
    quiet = QuietRounds()
    found: dict[str, list[Round]] = {}
    shared = SHAPES[arguments.shared_shape].with_layers(arguments.shared_layers)
    outcomes: list[SharedRound] = []
    disturbed: DisturbedError | None = None
    try:
        for quant in FORMATS:
            found[quant or "bf16"] = rounds(directory, quant, quiet, arguments.rounds)
        outcomes = shared_rounds(shared, SETUPS, quiet, arguments.rounds)
    except DisturbedError as error:
        disturbed = error
    text = page(shape, found, quiet) + shared_page(shared, outcomes)
    publish(f"placement-{shape.name}", text, disturbed)


def shared_rounds(shape: Shape, setups: Sequence[Setup], quiet: QuietRounds, count: int) -> list[SharedRound]:
    """Return the rounds of a shape on all setups, which take turns."""
    directory = write_checkpoint(shape, checkpoint_directory(shape))
    load = Load(str(directory), context_len=1024, slots=1)
    names = dict.fromkeys(name for setup in setups for name in setup.devices)
    with tempfile.TemporaryDirectory() as probes:
        architectures = make_host(Path(probes)).architectures()
    with Machine(architectures, list(names)) as machine:

        def one_round(_number: int) -> SharedRound:
            profile_s = machine.measure_devices()
            return SharedRound(profile_s, {setup.name: machine.compare(load, setup) for setup in setups})

        return quiet.take("several devices", one_round, count)


def rounds(directory: Path, quant: Format | None, quiet: QuietRounds, count: int) -> list[Round]:
    """Return the rounds of a format."""
    load = Load(str(directory), device="cpu", quant=quant, context_len=1024, slots=1)
    with tempfile.TemporaryDirectory() as probes:
        architectures = make_host(Path(probes)).architectures()
    device = CpuDevice()
    with closing(load_model(load, architectures, lambda _: device, lambda _: None)) as model:
        return quiet.take(quant or "bf16", lambda _number: one_round(load, model, device), count)


def one_round(load: Load, model: LoadedModel, device: Device) -> Round:
    """Measure the device, then a request."""
    began = time.perf_counter()
    profile = full_profile(device, FULL.budget_s)
    profile_s = time.perf_counter() - began
    took = time_requests(model, TYPICAL, rounds=1)
    prompt_s, request_s = (
        predicted_seconds(load, device, profile, request)
        for request in (Request(TYPICAL.prompt_len, 0), TYPICAL)
    )
    answer = (request_s - prompt_s) / (took.request_s - took.prompt_s)
    return Round(prompt_s / took.prompt_s, answer, profile_s)


def predicted_seconds(load: Load, device: Device, profile: DeviceProfile, request: Request) -> float:
    """Return what the rates predict for a request on the device."""
    with tempfile.TemporaryDirectory() as probes:
        opened = open_model(Path(load.directory), make_host(Path(probes)).architectures(), load.context_len)
    with closing(opened.checkpoint):
        candidate = Candidate(device.info, profile, MEMORY_BYTES)
        problem = ModelOnDevices(*with_default_quant(load, opened), [candidate]).problem(request)
    choice = cost_of(problem, (0,) * len(problem.parts))
    assert choice is not None, "the CPU backend runs every shape"
    return choice.seconds


def page(shape: Shape, found: dict[str, list[Round]], quiet: QuietRounds) -> str:
    """Return the results in Markdown."""
    lines = [
        f"# Predicted and measured: {shape.name} on the CPU",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {describe()}. {quiet.tally}",
        "",
        f"Predicted seconds divided by measured ones, for a prompt of {TYPICAL.prompt_len} tokens and an answer",
        f"of {TYPICAL.answer_len} tokens: median of the rounds (least to most). In each round, the device is",
        "measured first, as at a first start.",
        "",
        "| weights | prompt | answer | measuring the device |",
        "|---|---|---|---|",
    ]
    for name, rounds_of in found.items():
        seconds = statistics.median(one.profile_s for one in rounds_of)
        prompts, answers = [one.prompt for one in rounds_of], [one.answer for one in rounds_of]
        lines.append(f"| {name} | {spread(prompts)} | {spread(answers)} | {seconds:.1f} s |")
    return "\n".join([*lines, ""])


def shared_page(shape: Shape, found: Sequence[SharedRound]) -> str:
    """Return the results of setups in Markdown; nothing without rounds."""
    if not found:
        return ""
    lines = [
        "",
        f"## {shape.name} in bf16 on several devices",
        "",
        "All setups take turns. `quick`, `slow` and `far` only keep time; `far` is slow at attention. The gain is the",
        "time of the fastest choice of whole layers, divided by that of the choice that was made.",
        "",
        "| setup | chosen | prompt | answer | gain |",
        "|---|---|---|---|---|",
    ]
    for name in found[0].outcomes:
        of_setup = [one.outcomes[name] for one in found]
        chosen = " or ".join(dict.fromkeys(one.devices for one in of_setup))
        gains = [one.gain for one in of_setup if one.gain is not None]
        ratios = [spread([one.prompt for one in of_setup]), spread([one.answer for one in of_setup])]
        lines.append(f"| {name} | {chosen} | {' | '.join(ratios)} | {spread(gains) if gains else ''} |")
    lines += ["", "| device | measuring it |", "|---|---|"]
    for device in found[0].profile_s:
        seconds = statistics.median(one.profile_s[device] for one in found)
        lines.append(f"| {device} | {seconds:.1f} s |")
    return "\n".join([*lines, ""])


def spread(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


if __name__ == "__main__":
    main()
