"""One measurement: finds the model and the tokenizer, makes the samples and runs the load."""

from __future__ import annotations

import asyncio
import signal
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec import Struct, structs

from llmd.api.errors import NotFoundError
from llmd.benchmark.arrivals import Traffic, arrival_times
from llmd.benchmark.client import BenchmarkClient, ServedName
from llmd.benchmark.data_set import DataSet, RandomData
from llmd.benchmark.load import Run, Sample, run_load
from llmd.benchmark.report import ReportHeader
from llmd.benchmark.target import COMPLETIONS, PATHS, Endpoint, Target
from llmd.benchmark.timeline import Outcome
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from llmd.registry.store import Store


class Plan(Struct, frozen=True):
    """What to measure."""

    backend: str = COMPLETIONS
    path: str | None = None
    """The route; None: the API's default."""
    model: str | None = None
    """None: the server's first."""
    tokenizer: str | None = None
    """A model on this machine; None: the measured model."""
    headers: Mapping[str, str] = {}
    fields: Mapping[str, Any] = {}
    """Sent with each request."""
    data: DataSet = RandomData()
    traffic: Traffic = Traffic()
    num_prompts: int = 1000
    num_warmups: int = 0
    """Requests before the load. Their seed differs, so that they put nothing of the load into caches."""
    seed: int = 0
    label: str | None = None
    silence_s: float = 600.0
    """A request fails if its answer pauses for longer."""
    ca_file: str | None = None


async def measure(
    plan: Plan, target: Target, store: Store, ended: Callable[[Outcome], None] = lambda _: None
) -> tuple[ReportHeader, Run]:
    """Measure a server. SIGINT and SIGTERM end the load; the result so far is returned.

    Raises:
        LlmdError: there is no server, model or tokenizer, or the samples cannot be made.
    """
    async with BenchmarkClient(
        target, plan.headers, silence_s=plan.silence_s, ca_file=plan.ca_file
    ) as client:
        served = await client.model(plan.model)
        name, tokenizer = find_tokenizer(plan.tokenizer, served, store)
        samples = plan.data.samples(tokenizer, plan.num_prompts, plan.seed)
        endpoint = Endpoint(plan.backend, plan.path or PATHS[plan.backend], served.name, plan.fields)
        prefix = f"bench-{uuid.uuid4().hex[:8]}"

        async def ask(sample: Sample, index: int, arrived_s: float) -> Outcome:
            outcome = await client.ask(endpoint, sample, f"{prefix}-{index}", arrived_s=arrived_s)
            return outcome if outcome.output_len is not None else counted(outcome, tokenizer)

        limit = plan.traffic.max_concurrency
        if plan.num_warmups:
            warmups = plan.data.samples(tokenizer, plan.num_warmups, plan.seed + 1)
            await run_load(warmups, [0.0] * len(warmups), ask, max_concurrency=limit)
        times = arrival_times(plan.traffic, plan.num_prompts, plan.seed)
        with ended_by_signals():
            run = await run_load(samples, times, ask, max_concurrency=limit, ended=ended)
    return ReportHeader.now(plan.backend, plan.label, served.name, name, plan.num_prompts), run


def find_tokenizer(named: str | None, served: ServedName, store: Store) -> tuple[str, Tokenizer]:
    """Return the named tokenizer, or the model's, and the name under which it was found.

    Raises:
        NotFoundError: it is not on this machine.
        TokenizerError: it cannot be loaded.
    """
    names = (served.root, served.name) if named is None else (named,)
    for name in names:
        try:
            directory = store.find(name, allow_path=True).directory
        except NotFoundError:
            if named is not None:
                raise
        else:
            return name, load_tokenizer(directory)
    raise NotFoundError(
        f"the tokenizer of {served.name} is not on this machine",
        hint="name its directory, or a model with the same one, with --tokenizer",
    )


def counted(outcome: Outcome, tokenizer: Tokenizer) -> Outcome:
    """Count the tokens of an answer whose server did not report the number."""
    tokens = tokenizer.encode(outcome.text, add_special=False, parse_special=False)
    return structs.replace(outcome, output_len=len(tokens))


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Make SIGINT and SIGTERM cancel the current task inside the block."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        loop.add_signal_handler(number, task.cancel)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
