"""Keeps a daemon fully loaded for a long time: ``python -m bench.soak --minutes 30``.

Runs the guide on the CPU backend with more clients than slots, a KV pool too small for all of them, and
requests of every kind and API (`bench.soak_mix`). The first requests fill all stores with a maximum number of
entries. After that nothing may grow: `bench.soak_report` compares the last third with the second.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.soak_clients import Clients
from bench.soak_levels import Sample, sample
from bench.soak_mix import FILL, MIX
from bench.soak_report import Soaked, faults_of, report
from llmd.config import UnixAddress
from tests.chaos.fault_clients import Target
from tests.serving.home import Home, make_home

RESULTS = Path(__file__).parent / "results"
MODEL = "guide"
SETTINGS = {
    "LLMD_DEVICE": "cpu",
    "LLMD_SLOTS": "16",
    "LLMD_KV_MEMORY": "12MiB",
    "LLMD_BUFFER_TOKENS": "64",
}
CLIENTS = 64
EVERY_S, LEAST_LOOKS = 5.0, 60
FEWEST_LOOKS = 9
"""Minimum samples for a trend over the last two thirds."""
FILLED = 1300
"""Requests before the soak, so that the daemon stores its maximum of 1000 responses."""
SETTLE_S = 120.0


class Plan(Struct, frozen=True):
    """The parameters of a soak."""

    seconds: float
    clients: int
    every_s: float
    """Sampling interval."""
    seed: int
    fill: int
    """Requests before the soak."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.soak")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=Path, help="write what was looked at here, one JSON object a line")
    arguments = parser.parse_args()
    seconds = arguments.minutes * 60
    with tempfile.TemporaryDirectory(prefix="llmd-soak-") as folder:
        home = make_home(Path(folder), Path(folder) / "cache")
        soaked = soak(
            home, Plan(seconds, CLIENTS, min(EVERY_S, seconds / LEAST_LOOKS), arguments.seed, FILLED)
        )
    if arguments.samples:
        arguments.samples.write_bytes(b"\n".join(map(msgspec.json.encode, soaked.samples)))
    text = report(soaked, SETTINGS, CLIENTS)
    print(text)
    (RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-soak.md").write_text(text)
    sys.exit("\n".join(faults_of(soaked)) or 0)


def soak(home: Home, plan: Plan) -> Soaked:
    """Load a daemon, then wait until it is idle."""
    home.environment.update(SETTINGS)
    with home.serve(MODEL) as served:
        target = Target(UnixAddress(home.socket), MODEL)
        before = Clients(home.socket, MODEL, FILL, plan.seed)
        asyncio.run(before.run(plan.clients, lambda: before.num_asked >= plan.fill))
        clients = Clients(home.socket, MODEL, MIX, plan.seed + 1)
        samples = asyncio.run(load(target, served.process.pid, clients, plan))
        target.settled(target.levels(), SETTLE_S)
        last = sample(target, served.process.pid, samples[-1].at_s)
    faults = before.faults + clients.faults
    return Soaked(samples, last, dict(clients.ended), faults, clients.compared, before.num_asked)


async def load(target: Target, front_pid: int, clients: Clients, plan: Plan) -> list[Sample]:
    """Run the clients and take samples; on a busy machine run longer, until there are enough samples."""
    began, samples = time.monotonic(), list[Sample]()

    def seconds() -> float:
        return time.monotonic() - began

    def over() -> bool:
        return seconds() > plan.seconds and len(samples) >= FEWEST_LOOKS

    async with asyncio.TaskGroup() as group:
        group.create_task(clients.run(plan.clients, over), name="clients")
        while not over():
            await asyncio.sleep(plan.every_s)
            samples.append(await asyncio.to_thread(sample, target, front_pid, seconds()))
    return samples


if __name__ == "__main__":
    main()
