"""Measures llmd's own cost relative to the CPU backend: ``python -m bench.host_share [SHAPE]``.

CPU time of the front process and the engine loop, as a share of the device's, while 16 streams decode. The
front is measured in a daemon with raw socket clients. Loop and device are measured in this process, as the
time outside and inside `Stage.submit`, where a CPU stage does its work.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from bench.checkpoint import checkpoint_directory, write_checkpoint
from bench.loop_cost import ANSWER_LEN, answer_all, http_request
from bench.servers import cpu_s, llmd_server
from bench.shapes import SHAPES
from llmd.api.messages import Load, StopParams, Submit
from llmd.api.samplers import SamplingParams
from llmd.engine.composition import loader_for
from llmd.engine.core import EngineCore

STREAMS, STEPS = 16, 100
CONTEXT_LEN = 1024
QUANT = "q8"
TEMPERATURE, TOP_P, TOP_K = 0.8, 0.9, 40
"""Random weights give flat distributions: without top-k, the nucleus would be most of the vocabulary."""


def main(shape: str = "llama-100m") -> None:
    """Print one JSON object; times are milliseconds of CPU time per step of 16 streams."""
    directory = write_checkpoint(SHAPES[shape], checkpoint_directory(SHAPES[shape]))
    front = front_ms(directory)
    loop, device = engine_ms(directory)
    times = {"front_ms": front, "loop_ms": loop, "device_ms": device, "share": (front + loop) / device}
    json.dump({"shape": shape} | {key: round(value, 4) for key, value in times.items()}, sys.stdout, indent=2)


def front_ms(directory: Path) -> float:
    """Return the CPU time of the front for one token of each stream."""
    with (
        tempfile.TemporaryDirectory(prefix="llmd-share-") as folder,
        llmd_server(directory, Path(folder), quant=QUANT, slots=STREAMS, context_len=CONTEXT_LEN) as server,
    ):
        before = cpu_s(server.pid)
        url = urlsplit(server.url)
        answer_all((url.hostname or "", url.port or 0), http_request(TEMPERATURE, TOP_P, TOP_K), STREAMS)
        return (cpu_s(server.pid) - before) * 1e3 / ANSWER_LEN


def engine_ms(directory: Path) -> tuple[float, float]:
    """Return the CPU time of the loop and of the device (with its threads) per step."""
    with tempfile.TemporaryDirectory() as cache:
        load = Load(str(directory), device="cpu", context_len=CONTEXT_LEN, slots=STREAMS, quant=QUANT)
        model = loader_for(Path(cache))(load, lambda _: None)
        try:
            return decode_ms(model.core)
        finally:
            model.close()


def decode_ms(core: EngineCore) -> tuple[float, float]:
    """Measure `engine_ms` of a core."""
    for request_id in range(STREAMS):
        prompt = tuple((np.arange(20) + request_id).tolist())
        sampling = SamplingParams(request_id, TEMPERATURE, TOP_K, TOP_P)
        core.submit(Submit(request_id, prompt, sampling, StopParams(CONTEXT_LEN - len(prompt))))
    while core.report().running < STREAMS:
        core.step()
    device = _Device(core)
    began = time.thread_time()
    for _ in range(STEPS):
        core.step()
    loop = time.thread_time() - began - device.thread_s
    return loop * 1e3 / STEPS, device.process_s * 1e3 / STEPS


class _Device:
    """Sums the CPU time inside a stage's `submit`: of this thread, and of the whole process."""

    def __init__(self, core: EngineCore) -> None:
        self.thread_s = self.process_s = 0.0
        (stage,) = core._pipeline._stages  # noqa: SLF001 - the loop has no hook for a clock
        self._submit = stage.submit
        vars(stage)["submit"] = self.submit

    def submit(self, *arguments: object) -> object:
        """Call `Stage.submit` between two readings of the clocks."""
        thread, process = time.thread_time(), time.process_time()
        ticket = self._submit(*arguments)  # type: ignore[arg-type]
        self.thread_s += time.thread_time() - thread
        self.process_s += time.process_time() - process
        return ticket


if __name__ == "__main__":
    main(*sys.argv[1:])
