"""Our side: ``python -m bench.llmd_side DIRECTORY DEVICE QUANT``; answers requests as `bench.worker` describes."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from bench.worker import Measured, answer_requests
from llmd.api.messages import Load, SamplingParams, StopParams, Submit
from llmd.engine.composition import loader_for
from llmd.engine.core import EngineCore


def measure(core: EngineCore, prompt: list[int], num_decode: int) -> Measured:
    """Prefill the prompt, then decode greedily, each through the whole loop: scheduler, pager, sampler."""
    stop = StopParams(max_tokens=num_decode + 1)
    core.submit(Submit(1, tuple(prompt), SamplingParams(seed=0, temperature=0.0), stop))
    began = time.perf_counter()
    while not core.step().tokens:
        pass
    prefilled = time.perf_counter()
    while core.busy:
        core.step()
    return Measured(prefilled - began, time.perf_counter() - prefilled)


def main() -> None:
    directory, device, quant = sys.argv[1], sys.argv[2], sys.argv[3]
    with tempfile.TemporaryDirectory() as cache:
        load = Load(
            directory, device=device, context_len=2048, slots=1, quant=None if quant == "none" else quant
        )
        model = loader_for(Path(cache))(load, lambda _: None)
        answer_requests(lambda prompt, count: measure(model.core, prompt, count), model.loaded.load_s)
        model.close()


if __name__ == "__main__":
    main()
