"""Repeats faults with many clients: ``python -m bench.faults``. The chaos tests do the same with fewer
clients.

Each fault is repeated, and the daemon's memory after the first and the last time is compared: memory that an
allocator keeps after the first time is not a leak, repeated growth is.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from bench.machine import describe
from llmd.config import UnixAddress
from tests.chaos.fault_clients import (
    BUFFER_TOKENS,
    CONTEXT_LEN,
    LONG,
    MODEL,
    WIDE,
    EngineKiller,
    Levels,
    Target,
    answers,
    header_flood,
    large_body,
    leavers,
    slow_readers,
    speakers_of_garbage,
)
from tests.serving.home import make_home
from tests.serving.model import write_model

RESULTS = Path(__file__).parent / "results"
SETTINGS = {"LLMD_BUFFER_TOKENS": BUFFER_TOKENS, "LLMD_SLOTS": "16", "LLMD_MAX_QUEUE": "600"}
SETTLE_S = 120.0


class Outcome(Struct, frozen=True):
    """The result of a fault."""

    name: str
    seen: str
    """What was observed the last time."""
    seconds: float
    """Time of all repetitions together."""
    levels: list[Levels]
    """The daemon's resources after each."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.faults")
    parser.add_argument(
        "--kill-seconds", type=float, default=120.0, help="how long the engine is killed again and again"
    )
    parser.add_argument("--only", default="", help="only faults whose name has this in it")
    parser.add_argument("--times", type=int, default=2, help="how often each fault is done")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = make_home(Path(folder), Path(folder) / "cache")
        write_model(home.folder / "data" / "llmd" / "models" / MODEL, context_len=CONTEXT_LEN)
        home.environment.update(SETTINGS)
        with home.serve(MODEL):
            target = Target(UnixAddress(home.socket), MODEL)
            answers(target, 8, 100)
            text = report(
                [
                    run(target, name, fault, arguments.times)
                    for name, fault in faults(target, arguments.kill_seconds).items()
                    if arguments.only in name
                ]
            )
    print(text)
    (RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-faults.md").write_text(text)


def faults(target: Target, kill_s: float) -> Mapping[str, Callable[[], str]]:
    """Return every fault by name; each returns what was observed."""
    return {
        "500 slow readers": lambda: slow(target, 500),
        "200 clients leave in their streams": lambda: done(leavers(target, 200, LONG)),
        "500 connections send garbage": lambda: done(speakers_of_garbage(target, 500)),
        "20 bodies of 100 MB": lambda: f"statuses {bodies(target, 20)}",
        "50 floods of 10 000 headers": lambda: floods(target, 50),
        f"kill -9 of the engine every 5 s for {kill_s / 2:g} s, 32 streams": lambda: kills(
            target, kill_s / 2
        ),
    }


def run(target: Target, name: str, fault: Callable[[], str], times: int) -> Outcome:
    """Repeat a fault. Before each look the daemon must answer, so that a killed engine has restarted."""
    print(f"{name} …", flush=True)
    before, began, seen, levels = target.levels(), time.monotonic(), "", list[Levels]()
    for _ in range(times):
        seen = fault()
        assert answers(target, 1, 20), "the daemon does not serve"
        levels.append(target.settled(before, SETTLE_S))
    outcome = Outcome(name, seen, time.monotonic() - began, levels)
    print(outcome, flush=True)
    return outcome


def slow(target: Target, count: int) -> str:
    waited: list[float] = []

    def meanwhile() -> None:
        began = time.monotonic()
        answers(target, 1, 20)
        waited.append(time.monotonic() - began)

    whole = asyncio.run(slow_readers(target, count, WIDE, meanwhile))
    return f"{whole} of {count} streams whole once they were read; another request took {waited[0]:.1f} s meanwhile"


def done(work: Any) -> str:
    asyncio.run(work)
    return "all ended"


def bodies(target: Target, count: int) -> list[int]:
    async def send() -> list[int]:
        return [await large_body(target, 100 << 20) for _ in range(count)]

    return sorted(set(asyncio.run(send())))


def floods(target: Target, count: int) -> str:
    async def send() -> None:
        async with asyncio.TaskGroup() as group:
            for place in range(count):
                group.create_task(header_flood(target, 10_000), name=f"flood {place}")

    asyncio.run(send())
    return "all were cut off"


def kills(target: Target, seconds: float) -> str:
    undisturbed = answers(target, 32, 400)
    killer, ended = EngineKiller(target, every_s=5.0, tokens=1), threading.Event()
    killing = threading.Thread(target=killer.run, args=(ended.is_set,), name="killer")
    killing.start()
    rounds, until = 0, time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            assert answers(target, 32, 400) == undisturbed, "wrong or missing tokens"
            rounds += 1
    finally:
        ended.set()
        killing.join()
    return f"{killer.kills} kills in {rounds} rounds of 32 streams of 400 tokens: no wrong or missing token"


def report(outcomes: list[Outcome]) -> str:
    """Return the page for the results."""
    rows = [
        f"| {one.name} | {one.seen} | {one.seconds:.0f} s | {_change(one, 'front_bytes')} | {_change(one, 'engine_bytes')} | "
        f"{one.levels[-1].front_descriptors - one.levels[0].front_descriptors:+d}, "
        f"{one.levels[-1].engine_descriptors - one.levels[0].engine_descriptors:+d} | {one.levels[-1].blocks_used} |"
        for one in outcomes
    ]
    settings = ", ".join(f"{name}={value}" for name, value in SETTINGS.items())
    how = (
        f"{describe()}; {datetime.now(UTC):%Y-%m-%d}. `python -m bench.faults`: a tiny model with a window of {CONTEXT_LEN} "
        f"tokens, {settings}, clients on the Unix socket. Each fault was done {len(outcomes[0].levels)} times; memory is that "
        "after the first, a middle and the last time, descriptors are compared between the first and the last, each when "
        "nothing ran any more and the daemon had answered. Other work ran on the machine: times say little."
    )
    titles = (
        "fault",
        "seen",
        "all times",
        "front memory",
        "engine memory",
        "descriptors of front, engine",
        "blocks in use",
    )
    head = [f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
    return "\n".join(["# Faults", "", how, "", *head, *rows, ""])


def _change(outcome: Outcome, field: str) -> str:
    values = [getattr(one, field) / 2**20 for one in outcome.levels]
    told = (values[0], values[len(values) // 2], values[-1])
    return f"{' → '.join(f'{value:.1f}' for value in told)} MiB"


if __name__ == "__main__":
    main()
