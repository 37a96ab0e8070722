"""Bad clients, a daemon in a process of its own, and what it takes afterwards.
`python -m bench.faults` does all this at length.
"""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from llmd.api.errors import DaemonUnreachableError, LlmdError
from llmd.client import Client
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
from tests.golden.models.hybrids import qwen3_5_moe
from tests.golden.models.llama import llama
from tests.serving.home import Home, Served, make_home
from tests.serving.model import write_model

GROWTH_BYTES = 48 << 20
"""What the allocators of a front may keep after its first hard work."""
FAMILIES = {"llama": (llama, "reference"), "hybrid mixture": (qwen3_5_moe, "cpu")}
"""Configurations of models, and the devices that run them."""


@pytest.fixture(scope="module", params=FAMILIES)
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, probes: Path) -> Home:
    family, device = FAMILIES[request.param]
    home = make_home(tmp_path_factory.mktemp("home"), probes)
    write_model(home.folder / "data" / "llmd" / "models" / MODEL, context_len=CONTEXT_LEN, family=family)
    home.environment["LLMD_DEVICE"] = device
    home.environment["LLMD_BUFFER_TOKENS"] = BUFFER_TOKENS
    home.environment["LLMD_DRAIN_S"] = "0.5"
    # It would start between two looks at the daemon's descriptors.
    home.environment["LLMD_SPARE_ENGINE"] = "false"
    return home


@pytest.fixture(scope="module")
def target(home: Home) -> Iterator[Target]:
    """A daemon that has answered once."""
    with home.serve(MODEL):
        target = Target(UnixAddress(home.socket), MODEL)
        answers(target, 4, 50)
        yield target


def check(target: Target, before: Levels) -> None:
    """The daemon answers, and has given back what it took."""
    (text,) = answers(target, 1, 20)
    assert text
    after = target.settled(before)
    assert (after.running, after.waiting, after.blocks_used) == (0, 0, 0)
    assert after.front_descriptors <= before.front_descriptors
    assert after.engine_descriptors == before.engine_descriptors
    assert after.front_bytes < before.front_bytes + GROWTH_BYTES


def test_slow_readers_hold_nobody_and_lose_nothing(target: Target) -> None:
    before = target.levels()
    alone = answers(target, 2, 60)
    meanwhile: list[list[str]] = []
    whole = asyncio.run(slow_readers(target, 10, WIDE, lambda: meanwhile.append(answers(target, 2, 60))))
    assert whole == 10
    assert meanwhile == [alone]
    check(target, before)


def test_clients_that_leave_in_their_streams_leave_nothing_behind(target: Target) -> None:
    before = target.levels()
    asyncio.run(leavers(target, 24, LONG))
    check(target, before)


def test_garbage_does_no_harm(target: Target) -> None:
    before = target.levels()
    asyncio.run(speakers_of_garbage(target, 35))
    check(target, before)


def test_bodies_over_the_limit_are_refused_and_not_kept(target: Target) -> None:
    before = target.levels()
    assert asyncio.run(large_body(target, 100 << 20)) in {413, 0}
    check(target, before)


def test_headers_without_end_are_cut_off(target: Target) -> None:
    before = target.levels()
    asyncio.run(header_flood(target, 5000))
    check(target, before)


def test_engine_that_is_killed_again_and_again_loses_no_token(target: Target) -> None:
    before = target.levels()
    undisturbed = answers(target, 6, 200)
    killer, done = EngineKiller(target, every_s=0.05, tokens=300), threading.Event()
    killing = threading.Thread(target=killer.run, args=(done.is_set,), name="killer")
    killing.start()
    try:
        while killer.kills < 2:
            assert answers(target, 6, 200) == undisturbed
    finally:
        done.set()
        killing.join()
    check(target, before)


def test_sigterm_under_load_ends_every_stream_whole_or_with_an_error(home: Home) -> None:
    folder = home.folder / "second"
    folder.mkdir()
    environment = {**home.environment, "LLMD_ADDR": f"unix:{folder}/llmd.sock"}
    with Home(home.folder, environment).serve(MODEL) as served:
        client = Client(f"unix:{folder}/llmd.sock")
        begun = threading.Semaphore(0)

        def ending(place: int) -> str:
            fields = {"max_tokens": 20 if place % 2 else CONTEXT_LEN - 64, "ignore_eos": True}
            messages = [{"role": "user", "content": f"Count to {place}"}]
            try:
                for piece in client.stream_chat(messages, model=MODEL, **fields):
                    begun.release()
                    if piece.finish:
                        return piece.finish
            except LlmdError as error:
                return "lost" if isinstance(error, DaemonUnreachableError) else error.message
            return "cut"

        with ThreadPoolExecutor(16) as pool:
            endings = [pool.submit(ending, place) for place in range(16)]
            for _ in range(40):
                begun.acquire()
            assert end(served) == 0
        told = {future.result() for future in endings}
    assert told <= {"length", "the daemon is shutting down (retry the request)"}
    assert len(told) == 2


def end(served: Served) -> int:
    served.process.send_signal(signal.SIGTERM)
    return served.process.wait(20)


def test_levels_are_read_from_the_metrics(target: Target) -> None:
    levels = target.settled(target.levels())
    assert levels.front_bytes > 1 << 20
    assert levels.engine_descriptors > 2
    assert json.loads(target.get("/ready"))["models"] == [MODEL]
