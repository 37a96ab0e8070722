"""The engine process, over its socket as the front uses it."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import msgspec
import numpy as np
import pytest

from llmd.api.embedding import Embedding
from llmd.api.messages import (
    Cancel,
    EmbedText,
    FromEngine,
    Load,
    Loaded,
    Loading,
    Shutdown,
    StageSpec,
    StopParams,
    Submit,
)
from llmd.api.reports import GetReport, Report
from llmd.api.results import Embedded, Failed, Output
from llmd.api.samplers import SamplingParams
from llmd.engine.loading import LoadedModel
from llmd.engine.process import serve
from llmd.host.blas_threads import VARIABLES
from llmd.process.frames import FrameDecoder, encode_frame
from llmd.registry.spools import Spools
from tests.golden.checkpoint import write_checkpoint
from tests.golden.expected import read_expected
from tests.golden.models.catalog import tiny_model
from tests.serving.failing_device import FailingDevice
from tests.serving.mixed_requests import NUM_STREAMS
from tests.serving.model import write_embedding_model, write_model
from tests.serving.threaded_engine import ThreadedEngine, answers_of

CASE = tiny_model("tinyllama")


class Front:
    """The front's end of an engine process."""

    def __init__(self, cache: Path) -> None:
        mine, theirs = socket.socketpair()
        command = [sys.executable, "-m", "llmd.engine", "--fd", str(theirs.fileno()), "--cache", str(cache)]
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE)
        theirs.close()
        self.socket = mine
        self._decoder: FrameDecoder[FromEngine] = FrameDecoder(cast("type[FromEngine]", FromEngine))
        self._messages: list[FromEngine] = []

    def send(self, *messages: msgspec.Struct) -> None:
        self.socket.sendall(b"".join(encode_frame(message) for message in messages))

    def receive(self) -> FromEngine:
        while not self._messages:
            received = self.socket.recv(65536)
            assert received, "the engine has gone"
            self._messages += self._decoder.feed(received)
        return self._messages.pop(0)

    def tokens_of(self, *request_ids: int) -> dict[int, list[int]]:
        """Receive until every request has ended."""
        tokens: dict[int, list[int]] = {request_id: [] for request_id in request_ids}
        running = set(request_ids)
        while running:
            message = self.receive()
            assert isinstance(message, Output), message
            for output in message.tokens:
                tokens[output.request_id].append(output.token)
                running -= {output.request_id} if output.finish else set()
        return tokens

    def loaded(self) -> Loaded:
        while isinstance(message := self.receive(), Loading):
            pass
        assert isinstance(message, Loaded), message
        return message


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(CASE, tmp_path_factory.mktemp("model") / CASE.name)


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    front = Front(tmp_path)
    yield front
    front.socket.close()
    assert front.process.stderr is not None
    front.process.kill()
    front.process.wait()
    front.process.stderr.close()


@pytest.fixture
def many_blas_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set what users may have in their environment."""
    for name in VARIABLES:
        monkeypatch.setenv(name, "8")


def load(directory: Path, **changes: object) -> Load:
    options = {
        "device": "reference",
        "context_len": CASE.context_len,
        "kv_dtype": "f32",
        "slots": 2,
    } | changes
    return Load(str(directory), **options)  # type: ignore[arg-type]


def golden_request(request_id: int = 1) -> tuple[Submit, list[int]]:
    expected = read_expected(CASE.name)
    tokens = expected.tokens.tolist()
    greedy = SamplingParams(seed=0, temperature=0.0)
    return Submit(request_id, tuple(CASE.prompt), greedy, StopParams(len(tokens))), tokens


def test_answers_with_the_tokens_of_the_oracle(front: Front, directory: Path) -> None:
    request, expected = golden_request()
    front.send(load(directory), request)
    loaded = front.loaded()
    assert (loaded.architecture, loaded.stages[0].device) == ("llama", "reference")
    assert front.tokens_of(1) == {1: expected}
    front.send(Shutdown())
    assert front.process.wait(10) == 0


@pytest.mark.usefixtures("many_blas_threads")
def test_blas_keeps_to_one_thread_whatever_the_environment_says(front: Front, directory: Path) -> None:
    request, expected = golden_request()
    front.send(load(directory), request)
    front.loaded()
    assert front.tokens_of(1) == {1: expected}
    assert len(list(Path(f"/proc/{front.process.pid}/task").iterdir())) == 1


@pytest.mark.usefixtures("many_blas_threads")
def test_an_engine_without_requests_sleeps_and_has_no_threads_but_those_that_were_asked_for(
    front: Front, directory: Path
) -> None:
    request, expected = golden_request()
    front.send(load(directory, device="cpu", threads=3), request)
    front.loaded()
    assert len(front.tokens_of(1)[1]) == len(expected)
    tasks = list(Path(f"/proc/{front.process.pid}/task").iterdir())
    assert len(tasks) == 3
    for _ in range(100):
        before = [processor_time(task) for task in tasks]
        np.linalg.inv(np.eye(400) + 1)  # takes far longer than threads spin
        if [processor_time(task) for task in tasks] == before:
            return
    pytest.fail("the threads never came to rest")


def processor_time(task: Path) -> str:
    """Return the nanoseconds that a thread ran, and how often it was scheduled."""
    return (task / "schedstat").read_text()


def test_reports_and_cancels_while_it_runs(front: Front, directory: Path) -> None:
    request, _ = golden_request()
    front.send(load(directory), request)
    front.loaded()
    front.receive()
    front.send(Cancel(1), GetReport())
    while not isinstance(message := front.receive(), Report):
        pass
    assert (message.running, message.waiting, message.kv_blocks_used) == (0, 0, 0)


def test_a_request_that_cannot_run_fails_alone(front: Front, directory: Path) -> None:
    request, expected = golden_request(2)
    front.send(load(directory), Submit(1, (), SamplingParams(seed=0), StopParams(1)), request)
    front.loaded()
    failed = front.receive()
    assert isinstance(failed, Failed)
    assert (failed.request_id, failed.error) == (1, "RequestError")
    assert front.tokens_of(2) == {2: expected}


def test_a_model_that_embeds_answers_with_vectors(front: Front, tmp_path: Path) -> None:
    directory = write_embedding_model(tmp_path / "embedding")
    request, _ = golden_request(3)
    front.send(load(directory), EmbedText(1, (7, 8)), request, EmbedText(2, (9,)))
    loaded = front.loaded()
    assert loaded.embedding == Embedding(("last",), nested=True)
    failed, embedded = front.receive(), front.receive()
    assert isinstance(failed, Failed)
    assert (failed.request_id, failed.message) == (3, "the model embeds texts and cannot generate")
    assert isinstance(embedded, Embedded)
    assert [one.request_id for one in embedded.started] == [1, 2]
    assert [(one.request_id, len(one.vector)) for one in embedded.vectors] == [(1, 256), (2, 256)]
    front.send(GetReport())
    report = front.receive()
    assert isinstance(report, Report)
    assert (report.steps, report.prompt_tokens, report.waiting) == (1, 3, 0)


def test_a_model_that_generates_embeds_nothing(front: Front, directory: Path) -> None:
    front.send(load(directory), EmbedText(1, (7, 8)))
    front.loaded()
    failed = front.receive()
    assert isinstance(failed, Failed)
    assert (failed.request_id, failed.error) == (1, "RequestError")
    assert "cannot embed" in failed.message


def test_a_model_that_cannot_be_loaded_is_said(front: Front, tmp_path: Path) -> None:
    front.send(load(tmp_path / "absent"))
    failed = front.receive()
    assert isinstance(failed, Failed)
    assert (failed.request_id, failed.error) == (None, "NotFoundError")
    assert front.process.wait(10) == 1


def test_a_model_for_which_there_is_no_memory_is_said() -> None:
    def loader(_message: Load, _report: object) -> LoadedModel:
        raise MemoryError

    mine, theirs = socket.socketpair()
    with mine, theirs:
        mine.sendall(encode_frame(load(Path("absent"))))
        assert serve(theirs, loader) == 1
        decoder: FrameDecoder[FromEngine] = FrameDecoder(cast("type[FromEngine]", FromEngine))
        (failed,) = decoder.feed(mine.recv(1 << 16))
    assert isinstance(failed, Failed)
    assert (failed.error, failed.message) == ("MemoryBudgetError", "there is not enough memory")


def test_all_streams_go_on_in_the_same_process_when_a_device_is_lost(tmp_path: Path) -> None:
    directory = write_model(tmp_path / "model")
    undisturbed = ThreadedEngine(FailingDevice("gpu"))
    expected, none = answers_of(undisturbed, directory, "gpu")
    assert undisturbed.end() == 0
    assert (len(expected), none) == (NUM_STREAMS, [])
    gpu = FailingDevice("gpu")
    gpu.lose("wait", 9)
    engine = ThreadedEngine(gpu, FailingDevice("cpu"))
    found, (move,) = answers_of(engine, directory, "gpu")
    assert engine.end() == 0
    assert found == expected
    assert (move.epoch, [stage.device for stage in move.stages]) == (1, ["cpu"])
    assert move.kv_tokens is not None
    assert move.formats == ("f32",)
    assert "gpu" in move.notices[-1]


def test_requests_without_room_after_a_failure_end_alone(directory: Path) -> None:
    """The pool holds 64 tokens of all layers, and 32 once it was halved."""
    device = FailingDevice("gpu")
    device.exhaust("wait", 2)
    engine = ThreadedEngine(device)
    block_bytes = 16 * 2 * 2 * 4 * 8
    large, small = (
        Submit(number, (7,) * 4, SamplingParams(seed=0, temperature=0.0), StopParams(max_tokens))
        for number, max_tokens in ((1, 50), (2, 8))
    )
    engine.send(load(directory, device="gpu", kv_memory=4 * block_bytes), large, small)
    tokens, failed = 0, []
    for message in engine.messages():
        if isinstance(message, Failed):
            failed.append(message)
        if isinstance(message, Output):
            of_small = [one for one in message.tokens if one.request_id == 2]
            tokens += len(of_small)
            if of_small and of_small[-1].finish:
                break
    assert engine.end() == 0
    ((request_id, error),) = [(one.request_id, one.error) for one in failed]
    assert (request_id, error, tokens) == (1, "MemoryBudgetError", 8)


def test_without_another_device_all_requests_end_with_the_reason(directory: Path) -> None:
    device = FailingDevice("gpu")
    device.lose("submit", 2)
    engine = ThreadedEngine(device)
    engine.send(load(directory, device="gpu"), golden_request(1)[0])
    *_, last = engine.messages()
    assert isinstance(last, Failed)
    assert (last.request_id, last.error) == (None, "DeviceLostError")
    assert "no other device can run its part" in last.message
    assert engine.end() == 1


@pytest.mark.parametrize(
    ("changes", "error", "part"),
    [
        ({"device": "nowhere"}, "NotFoundError", "nowhere"),
        ({"stages": (StageSpec("reference", "0", "0"),)}, "ConfigError", "--split"),
        ({"stages": (StageSpec("reference", "1", "1"),)}, "ConfigError", "--split"),
        ({"kv_memory": 10}, "MemoryBudgetError", "budget is 10"),
    ],
)
def test_options_that_cannot_be_followed_are_errors(
    front: Front, directory: Path, changes: dict[str, object], error: str, part: str
) -> None:
    front.send(load(directory, **changes))
    while isinstance(message := front.receive(), Loading):
        pass
    assert isinstance(message, Failed)
    assert message.error == error
    assert part in message.message


def test_ends_when_the_front_goes(front: Front, directory: Path) -> None:
    front.send(load(directory))
    front.loaded()
    front.socket.close()
    assert front.process.wait(10) == 0


def test_a_front_that_goes_without_reading_is_no_crash(front: Front, directory: Path) -> None:
    front.send(load(directory))
    front.loaded()
    front.send(GetReport())
    assert select.select([front.socket], [], [], 20)[0]
    front.socket.close()
    assert front.process.wait(10) == 0


def test_a_terminal_interrupt_does_not_end_it(front: Front, directory: Path) -> None:
    front.send(load(directory))
    front.loaded()
    os.kill(front.process.pid, signal.SIGINT)
    request, expected = golden_request()
    front.send(request)
    assert front.tokens_of(1) == {1: expected}


@pytest.mark.parametrize("words", [(Shutdown(spool=True),), (Shutdown(spool=True), Shutdown())], ids=len)
def test_the_last_word_decides_whether_the_cache_is_kept(
    front: Front, directory: Path, tmp_path: Path, words: tuple[Shutdown, ...]
) -> None:
    request, _ = golden_request()
    front.send(load(directory, kv_spool=1 << 30), request)
    front.loaded()
    front.tokens_of(1)
    front.send(*words)
    assert front.process.wait(10) == 0
    assert Spools(tmp_path).path(directory).exists() == words[-1].spool
