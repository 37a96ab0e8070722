"""A supervisor with real engine processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from llmd.api.errors import CheckpointError, EngineCrashedError, LlmdError, MemoryBudgetError, RequestError
from llmd.api.messages import BeamParams, EmbedText, Load, StopParams, Submit
from llmd.api.samplers import SamplingParams
from llmd.server.engines.admission_limits import QueueLimits
from llmd.server.engines.engine_child import engine_command
from llmd.server.engines.engine_starter import EngineStarter
from llmd.server.engines.supervision import Phase
from llmd.server.engines.supervisor import UNNUMBERED, Supervisor
from llmd.server.engines.token_stream import TokenStream
from llmd.server.errors import BusyError, UnavailableError
from llmd.server.request_record import RequestRecord
from tests.serving.model import write_embedding_model

PROMPT = tuple(b"Hello")
# The real engine, except that its first step kills it.
FATAL_STEP = """
import os, signal, sys
from llmd.engine.core import EngineCore
EngineCore.step = lambda self: os.kill(os.getpid(), signal.SIGKILL)
from llmd.engine.__main__ import main
sys.exit(main())
"""

# The real engine, except that its device is lost after some steps.
LOST_DEVICE = """
import sys
from llmd.engine import composition
from tests.serving.failing_device import FailingDevice
from tests.serving.machine import machine_of
devices = {name: FailingDevice(name) for name in ("reference", "other")}
devices["reference"].lose("wait", 9)
composition.device_opener = lambda host, options: devices.__getitem__
composition.MachineDevices = lambda *_: machine_of([device.info for device in devices.values()])
from llmd.engine.__main__ import main
sys.exit(main())
"""


def request(max_tokens: int = 20, **sampling: Any) -> Submit:
    return Submit(
        UNNUMBERED,
        PROMPT,
        SamplingParams(**{"seed": 1, "temperature": 0.0, **sampling}),
        StopParams(max_tokens),
    )


async def tokens_of(supervisor: Supervisor, *requests: Submit) -> list[list[int]]:
    """Return the tokens of sequences that run together."""
    stream = supervisor.open(requests)
    tokens: list[list[int]] = [[] for _ in requests]
    running = len(requests)
    while running:
        index, token = await stream.next()
        tokens[index].append(token.token)
        running -= token.finish is not None
    return tokens


async def read_to_the_end(stream: TokenStream) -> None:
    while True:
        await stream.next()


class Delays:
    """Replaces the clock: records back-offs instead of waiting for them."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    async def __call__(self, delay_s: float) -> None:
        self.asked.append(delay_s)


@asynccontextmanager
async def supervised(directory: Path, command: tuple[str, ...], **options: Any) -> AsyncIterator[Supervisor]:
    load = Load(str(directory), device="reference", kv_dtype="f32", kv_memory=64 << 20, slots=4)
    supervisor = Supervisor("tiny", load, EngineStarter(command), **options)
    try:
        yield supervisor
    finally:
        await supervisor.close()


@pytest.fixture
async def supervisor(model_directory: Path, probes: Path) -> AsyncIterator[Supervisor]:
    async with supervised(model_directory, engine_command(probes)) as supervisor:
        yield supervisor


async def test_places_that_were_held_while_the_model_loaded_are_none_that_became_free(
    model_directory: Path, probes: Path
) -> None:
    """Otherwise refused requests would retry before there is room."""
    now, record = [0.0], RequestRecord()
    options = {"limits": QueueLimits(sequences=0), "clock": lambda: now[0]}
    async with supervised(model_directory, engine_command(probes), **options) as supervisor:
        with ExitStack() as held:
            held.enter_context(supervisor.reserve(record))
            now[0] = 30.0
            for _ in range(30):
                with supervisor.reserve(record):
                    pass
            for _ in range(3):  # the other slots
                held.enter_context(supervisor.reserve(record))
            with pytest.raises(BusyError) as refused, supervisor.reserve(record):
                pass
    assert refused.value.retry_after_s == 30


async def test_sequences_run_together_each_with_its_own_tokens(supervisor: Supervisor) -> None:
    loaded = await supervisor.loaded()
    assert loaded.architecture
    alone = await tokens_of(supervisor, request())
    together = await tokens_of(supervisor, request(), request(temperature=1.0), request(7))
    assert together[0] == alone[0]
    assert together[1] != alone[0]
    assert together[2] == alone[0][:7]


async def test_requests_may_come_before_the_model_has_loaded(supervisor: Supervisor) -> None:
    assert supervisor.phase is Phase.LOADING
    assert len((await tokens_of(supervisor, request(3)))[0]) == 3


async def test_killed_engine_is_replaced_and_the_tokens_stay_the_same(supervisor: Supervisor) -> None:
    undisturbed = await tokens_of(supervisor, request(), request(temperature=1.0))
    stream = supervisor.open([request(), request(temperature=1.0)])
    tokens: list[list[int]] = [[], []]
    finished = 0
    while finished < 2:
        index, token = await stream.next()
        tokens[index].append(token.token)
        finished += token.finish is not None
        if len(tokens[0]) == 5 and index == 0:
            assert supervisor.pid is not None
            os.kill(supervisor.pid, signal.SIGKILL)
    assert tokens == undisturbed
    assert supervisor.restarts == 1


def search(max_tokens: int = 60) -> Submit:
    return structs.replace(request(max_tokens), beams=BeamParams(3, 2))


async def test_a_search_that_a_killed_engine_had_gives_the_same_answers(supervisor: Supervisor) -> None:
    record = RequestRecord()
    _, undisturbed = await supervisor.search([search()], record).next()
    assert [len(found.tokens) for found in undisturbed.hypotheses] == [60, 60]
    assert record.completion_tokens == 120
    mailbox = supervisor.search([search()], RequestRecord())
    assert supervisor.waiting == 0
    report = await supervisor.report()
    assert report is not None
    assert supervisor.pid is not None
    os.kill(supervisor.pid, signal.SIGKILL)
    index, found = await mailbox.next()
    assert (index, found.hypotheses) == (0, undisturbed.hypotheses)
    assert supervisor.restarts == 1


async def test_a_search_takes_the_places_of_its_beams(supervisor: Supervisor) -> None:
    searches = [supervisor.search([search()], RequestRecord()) for _ in range(2)]
    assert supervisor.waiting == 6 - supervisor.slots
    for mailbox in searches:
        mailbox.close()
    assert supervisor.waiting == 0


async def test_cached_tokens_are_told_of_the_right_request_after_a_resubmission(
    supervisor: Supervisor,
) -> None:
    stream = supervisor.open([request(400)])
    await stream.next()
    (request_id,) = stream._index
    supervisor.pause(request_id)
    supervisor.resume(request_id)
    long = Submit(UNNUMBERED, PROMPT * 20, SamplingParams(seed=1, temperature=0.0), StopParams(1))
    await tokens_of(supervisor, long)
    other = supervisor.open([long])
    await other.next()
    assert other.cached_tokens[0] >= 80
    for one in (stream, other):
        one.close()


async def test_engine_that_always_dies_is_given_up_with_its_reason(
    model_directory: Path, probes: Path
) -> None:
    delays = Delays()
    command = (sys.executable, "-c", FATAL_STEP, "--cache", str(probes))
    async with supervised(model_directory, command, backoff_s=(1.0, 4.0), sleep=delays) as supervisor:
        await supervisor.loaded()
        with pytest.raises(EngineCrashedError, match="SIGKILL"):
            await supervisor.open([request()]).next()
        assert delays.asked == [0.0, 0.0, 1.0, 4.0]
        assert supervisor.phase is Phase.FAILED
        with pytest.raises(UnavailableError, match="SIGKILL"):
            await supervisor.open([request()]).next()


async def test_an_engine_that_moves_its_model_keeps_its_requests(
    supervisor: Supervisor, model_directory: Path, probes: Path
) -> None:
    undisturbed = await tokens_of(supervisor, request(), request(temperature=1.0))
    command = (sys.executable, "-c", LOST_DEVICE, "--cache", str(probes))
    async with supervised(model_directory, command) as moving:
        before = await moving.loaded()
        pid = moving.pid
        assert await tokens_of(moving, request(), request(temperature=1.0)) == undisturbed
        assert (moving.pid, moving.restarts) == (pid, 0)
        assert moving.known is not None
        assert [stage.device for stage in before.stages] == ["reference"]
        assert [stage.device for stage in moving.known.stages] == ["other"]


async def test_slow_reader_gets_every_token_and_holds_nobody(model_directory: Path, probes: Path) -> None:
    async with supervised(model_directory, engine_command(probes), buffer_tokens=4) as supervisor:
        (expected,) = await tokens_of(supervisor, request(60))
        slow = supervisor.open([request(60)])
        received = [(await slow.next())[1].token]
        for _ in range(3):
            assert (await tokens_of(supervisor, request(60)))[0] == expected
        report = await supervisor.report()
        assert report is not None
        assert (report.running, report.waiting) == (0, 0)
        while len(received) < len(expected):
            received.append((await slow.next())[1].token)
        assert received == expected


async def test_closed_stream_frees_its_requests(supervisor: Supervisor) -> None:
    stream = supervisor.open([request(400), request(400)])
    await stream.next()
    stream.close()
    await tokens_of(supervisor, request(2))
    report = await supervisor.report()
    assert report is not None
    assert (report.running, report.waiting, report.kv_blocks_used) == (0, 0, 0)


async def test_engine_that_does_not_answer_holds_nobody_who_asks(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    await supervisor.loaded()
    monkeypatch.setattr("llmd.server.engines.pending_answers.ANSWER_LIMIT_S", 0.05)
    assert supervisor.pid is not None
    os.kill(supervisor.pid, signal.SIGSTOP)
    assert await supervisor.report() is None
    os.kill(supervisor.pid, signal.SIGCONT)


async def test_request_that_cannot_run_fails_alone(supervisor: Supervisor) -> None:
    await supervisor.loaded()
    with pytest.raises(RequestError, match="do not fit"):
        await supervisor.open([request(100_000)]).next()
    assert len((await tokens_of(supervisor, request(2)))[0]) == 2


async def test_model_that_cannot_be_loaded_tells_its_error(tmp_path: Path, probes: Path) -> None:
    async with supervised(tmp_path, engine_command(probes)) as supervisor:
        with pytest.raises(CheckpointError, match=r"config\.json"):
            await supervisor.loaded()
        assert isinstance(supervisor.error, CheckpointError)
        assert await supervisor.report() is None


async def test_what_prevents_the_start_of_an_engine_is_an_error(model_directory: Path) -> None:
    async with supervised(model_directory, ("/nonexistent/python",)) as supervisor:
        with pytest.raises(EngineCrashedError, match="could not run it"):
            await supervisor.loaded()
        assert supervisor.load_sent.is_set()
    disk: asyncio.Future[Load] = asyncio.Future()
    disk.set_exception(OSError("disk full"))
    async with supervised(model_directory, ("/nonexistent/python",), admit=lambda _load: disk) as supervisor:
        with pytest.raises(LlmdError, match=r"could not make room for .+: disk full"):
            await supervisor.loaded()


async def test_an_engine_is_told_to_load_once_it_was_admitted(model_directory: Path, probes: Path) -> None:
    admitted = asyncio.Event()

    async def admit(load: Load) -> Load:
        await admitted.wait()
        return load.within({"reference": 1})

    async with supervised(model_directory, engine_command(probes), admit=admit) as supervisor:
        await asyncio.sleep(0)
        assert not supervisor.load_sent.is_set()
        admitted.set()
        await supervisor.load_sent.wait()
        assert supervisor.pid is not None
        with pytest.raises(MemoryBudgetError, match="exceed the limit of 1 B"):
            await supervisor.loaded()
    never = asyncio.Event()
    waiting = supervised(model_directory, engine_command(probes), admit=lambda _load: never.wait())
    async with waiting as closed:
        await closed.close()
        assert closed.load_sent.is_set()


async def test_closing_ends_the_process_and_what_waits_for_it(model_directory: Path, probes: Path) -> None:
    async with supervised(model_directory, engine_command(probes)) as supervisor:
        await supervisor.loaded()
        assert supervisor.load_sent.is_set()
        stream = supervisor.open([request(400)])
        await stream.next()
        pid = supervisor.pid
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(UnavailableError, match="unloaded"):
        await read_to_the_end(stream)


async def test_closing_while_the_engine_starts_leaves_nothing_behind(
    model_directory: Path, probes: Path
) -> None:
    async with supervised(model_directory, engine_command(probes)) as supervisor:
        pass
    with pytest.raises(UnavailableError):
        await supervisor.loaded()


async def test_an_ordered_end_while_loading_is_no_failure_of_the_engine(
    model_directory: Path, probes: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with supervised(model_directory, engine_command(probes)) as supervisor:
        for _ in range(100_000):
            if supervisor.pid is not None:
                break
            await asyncio.sleep(0)
        assert supervisor.pid is not None
    assert [record.message for record in caplog.records if record.message == "engine_died"] == []


async def vectors_of(
    supervisor: Supervisor, texts: Sequence[tuple[int, ...]], kill_after: int = -1
) -> list[bytes]:
    """Return the vectors of texts; the engine is killed after ``kill_after`` of them."""
    vectors = [b""] * len(texts)
    asked = [EmbedText(0, tokens) for tokens in texts]
    with closing(supervisor.embed(asked, RequestRecord())) as mailbox:
        for count in range(len(texts)):
            if count == kill_after:
                assert supervisor.pid is not None
                os.kill(supervisor.pid, signal.SIGKILL)
            index, one = await mailbox.next()
            vectors[index] = one.vector
    return vectors


async def test_texts_that_a_killed_engine_had_are_embedded_by_the_next(tmp_path: Path, probes: Path) -> None:
    texts = [(number % 250, 7, 8) * (number % 40 + 1) for number in range(80)]
    async with supervised(write_embedding_model(tmp_path / "e"), engine_command(probes)) as supervisor:
        undisturbed = await vectors_of(supervisor, texts)
        assert len(set(undisturbed)) == len(texts)
        assert await vectors_of(supervisor, texts, kill_after=3) == undisturbed
        assert supervisor.restarts == 1
        assert supervisor.waiting == 0


async def test_texts_of_one_request_take_one_place(tmp_path: Path, probes: Path) -> None:
    limits = QueueLimits(sequences=1)
    directory = write_embedding_model(tmp_path / "e")
    async with supervised(directory, engine_command(probes), limits=limits) as supervisor:
        for _ in range(2):  # entries must have been released
            many = [
                supervisor.embed([EmbedText(0, (1, 2))] * 50, RequestRecord()) for _ in range(5)
            ]  # four run, one waits
            assert supervisor.waiting == 1
            with pytest.raises(BusyError):
                supervisor.embed([EmbedText(0, (1,))], RequestRecord())
            for mailbox in many:
                mailbox.close()
            assert supervisor.waiting == 0
        assert len(await vectors_of(supervisor, [(1,)])) == 1


async def test_a_text_that_cannot_run_ends_its_request(tmp_path: Path, probes: Path) -> None:
    async with supervised(write_embedding_model(tmp_path / "e"), engine_command(probes)) as supervisor:
        with pytest.raises(RequestError, match="600 tokens"):
            await vectors_of(supervisor, [(1,), (1,) * 600])
        assert len(await vectors_of(supervisor, [(1,)])) == 1
