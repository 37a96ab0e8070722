"""Our side: ``python -m bench.llmd_side SETTINGS`` (JSON); answers requests as in `bench.worker`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec
import numpy as np

from bench.worker import answer
from llmd.api import KVDtype
from llmd.api.messages import Load, StopParams, Submit
from llmd.api.samplers import SamplingParams
from llmd.engine.composition import make_host
from llmd.engine.core import EngineCore
from llmd.engine.loading import LoadedModel, load_model
from llmd.registry.packed_weights import PackedWeightFiles
from llmd_backend_cpu.device import CpuDevice


class Settings(msgspec.Struct, frozen=True):
    """What to load and how. ``isa`` None is the machine's best."""

    directory: str
    quant: str | None
    cache: str
    context_len: int
    slots: int
    kv_memory: int
    threads: int
    isa: str | None = None
    kv_dtype: KVDtype = "f16"


def load(settings: Settings) -> LoadedModel:
    """Load like the engine process, on a CPU device with that instruction set and number of threads."""
    message = Load(
        settings.directory,
        device="cpu",
        context_len=settings.context_len,
        slots=settings.slots,
        quant=settings.quant,
        kv_dtype=settings.kv_dtype,
        kv_memory=settings.kv_memory,
        weight_cache=1 << 40,
    )
    cache = Path(settings.cache)
    architectures = make_host(cache).architectures()
    device = CpuDevice(settings.isa, settings.threads)
    return load_model(
        message, architectures, lambda _: device, lambda _: None, packed_files=PackedWeightFiles(cache)
    )


class Sequences:
    """Implements `bench.worker.Model` with the whole loop of scheduler, pager and sampler."""

    def __init__(self, core: EngineCore) -> None:
        self._core = core
        self._ids = iter(range(1, sys.maxsize))
        self._open: list[int] = []

    def open(self, prompts: list[list[int]], room: int) -> float:
        # The first sequences already grow while the last prompts are read, by at most a token per step.
        stop = StopParams(max_tokens=room + len(prompts))
        sampling = SamplingParams(seed=0, temperature=0.0)
        self._open = [next(self._ids) for _ in prompts]
        began = time.perf_counter()
        for request_id, prompt in zip(self._open, prompts, strict=True):
            self._core.submit(Submit(request_id, tuple(prompt), sampling, stop))
        waiting = set(self._open)
        while waiting:
            waiting -= {output.request_id for output in self._core.step().tokens}
        return time.perf_counter() - began

    def decode(self, count: int) -> float:
        began = time.perf_counter()
        for _ in range(count):
            num_tokens = len(self._core.step().tokens)
            assert num_tokens == len(self._open), f"{num_tokens} of {len(self._open)} sequences drew a token"
        return time.perf_counter() - began

    def close(self) -> None:
        for request_id in self._open:
            self._core.cancel(request_id)
        self._open = []

    def logits(self, tokens: list[int], path: str) -> None:
        np.save(path, self._core.forward(np.array(tokens)))


def main() -> None:
    settings = msgspec.json.decode(sys.argv[1], type=Settings)
    model = load(settings)
    loaded = model.loaded
    if settings.quant not in {None, *loaded.formats}:
        sys.exit(f"the CPU backend does not compute with {settings.quant}: {'; '.join(loaded.notices)}")
    facts = {
        "load_s": loaded.load_s,
        "formats": loaded.formats,
        "weight_bytes": sum(stage.weight_bytes for stage in loaded.stages),
        "kv_bytes": sum(stage.kv_bytes for stage in loaded.stages),
    }
    answer(Sequences(model.core), facts)
    model.close()


if __name__ == "__main__":
    main()
