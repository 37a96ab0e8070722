"""Requests of several callers in one core."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from llmd.api.errors import LlmdError, RequestError
from llmd.api.messages import Load, StopParams
from llmd.api.results import Output
from llmd.api.samplers import SamplingParams
from llmd.embedded.opening import load_stored, user_directories
from llmd.embedded.token_queue import TokenQueue

GREEDY = SamplingParams(seed=0, temperature=0.0)


@pytest.fixture
def queue(directory: Path) -> Iterator[TokenQueue]:
    model = load_stored(Load(str(directory), device="reference", slots=2), user_directories())
    yield TokenQueue(model.core)
    model.close()


def tokens_of(queue: TokenQueue, prompt: tuple[int, ...], count: int = 4) -> list[int]:
    request = queue.submit(prompt, GREEDY, StopParams(max_tokens=count))
    tokens = [queue.next(request).token for _ in range(count)]
    queue.cancel(request)
    return tokens


def test_tokens_of_others_are_kept_for_them(queue: TokenQueue) -> None:
    alone = [tokens_of(queue, prompt) for prompt in ((1, 2, 3), (4, 5))]
    first = queue.submit((1, 2, 3), GREEDY, StopParams(max_tokens=4))
    second = queue.submit((4, 5), GREEDY, StopParams(max_tokens=4))
    assert [queue.next(first).token for _ in range(4)] == alone[0]
    assert [queue.next(second).token for _ in range(4)] == alone[1]


def test_more_requests_than_slots_wait_their_turn(queue: TokenQueue) -> None:
    requests = [queue.submit((1, 2), GREEDY, StopParams(max_tokens=3)) for _ in range(5)]
    assert queue.report().waiting == 5
    assert [queue.next(requests[-1]).finish for _ in range(3)] == [None, None, "length"]


def test_threads_share_steps(queue: TokenQueue) -> None:
    expected = tokens_of(queue, (7, 8, 9), 12)
    answers: list[list[int]] = []
    threads = [
        threading.Thread(target=lambda: answers.append(tokens_of(queue, (7, 8, 9), 12)), name=f"caller {i}")
        for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 4


def test_a_cancelled_request_is_freed_and_a_refused_one_leaves_nothing(queue: TokenQueue) -> None:
    request = queue.submit((1, 2), GREEDY, StopParams(max_tokens=30))
    queue.next(request)
    queue.cancel(request)
    with pytest.raises(RequestError):
        queue.submit((), GREEDY, StopParams(max_tokens=1))
    report = queue.report()
    assert (report.running, report.waiting, report.kv_blocks_used) == (0, 0, 0)


def test_who_waits_comes_before_who_has_just_had_a_turn(
    queue: TokenQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, seen = queue._core, list[int]()
    step, other = core.step, threading.Thread(target=tokens_of, args=(queue, (4, 5)), name="the other caller")

    def step_while_the_other_waits() -> Output:
        report = core.report()
        seen.append(report.running + report.waiting)
        if len(seen) == 1:
            other.start()
            while not queue._door.locked():
                pass
        return step()

    monkeypatch.setattr(core, "step", step_while_the_other_waits)
    tokens_of(queue, (1, 2, 3))
    other.join()
    assert seen[:2] == [1, 2]


def test_a_stream_that_is_collected_within_a_step_is_freed_after_it(
    queue: TokenQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    abandoned = queue.submit((1, 2), GREEDY, StopParams(max_tokens=30))
    queue.next(abandoned)
    core = queue._core
    step = core.step

    def step_while_collecting() -> Output:
        queue.cancel(abandoned)
        return step()

    monkeypatch.setattr(core, "step", step_while_collecting)
    alone = tokens_of(queue, (1, 2, 3))
    monkeypatch.undo()
    assert alone == tokens_of(queue, (1, 2, 3))
    assert queue.report().kv_blocks_used == 0


def test_forward_runs_between_steps(queue: TokenQueue) -> None:
    request = queue.submit((1, 2), GREEDY, StopParams(max_tokens=3))
    first = queue.next(request).token
    logits = queue.forward(np.array([1, 2, first], np.int32))
    assert queue.next(request).token == int(logits[-1].argmax())


def test_counters_are_reset(queue: TokenQueue) -> None:
    tokens_of(queue, (1,))
    assert queue.report().output_tokens == 4
    queue.reset_counters()
    assert queue.report().output_tokens == 0


def test_a_closed_queue_says_so_and_forgets_requests_all_the_same(queue: TokenQueue) -> None:
    request = queue.submit((1, 2), GREEDY, StopParams(max_tokens=3))
    queue.check_open()
    queue.close()
    for use in (lambda: queue.next(request), queue.report, queue.check_open):
        with pytest.raises(LlmdError, match="closed"):
            use()
    queue.cancel(request)
