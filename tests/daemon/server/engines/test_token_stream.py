from __future__ import annotations

import asyncio

import pytest

from llmd.api.errors import DeviceError
from llmd.api.results import Logprobs, TokenOutput
from llmd.server.engines.token_stream import TokenStream


class Calls:
    """Records what the stream asked for."""

    def __init__(self) -> None:
        self.made: list[tuple[str, int]] = []

    def cancel(self, request_id: int) -> None:
        self.made.append(("cancel", request_id))

    def pause(self, request_id: int) -> None:
        self.made.append(("pause", request_id))

    def resume(self, request_id: int) -> None:
        self.made.append(("resume", request_id))


@pytest.fixture
def calls() -> Calls:
    return Calls()


async def test_tokens_come_in_order_with_the_index_of_their_sequence(calls: Calls) -> None:
    stream = TokenStream((70, 71), calls, 9)
    waiting = asyncio.Task(stream.next(), name="reader")
    await asyncio.sleep(0)
    stream.push(TokenOutput(71, 5))
    stream.push(TokenOutput(70, 6))
    assert await waiting == (1, TokenOutput(71, 5))
    assert await stream.next() == (0, TokenOutput(70, 6))


async def test_reader_that_gives_up_loses_no_token(calls: Calls) -> None:
    stream = TokenStream((70,), calls, 9)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(stream.next(), 0)
    stream.push(TokenOutput(70, 5))
    assert await stream.next() == (0, TokenOutput(70, 5))


async def test_slow_reader_pauses_its_requests_until_it_has_caught_up(calls: Calls) -> None:
    stream = TokenStream((70, 71), calls, 4)
    for token in range(4):
        stream.push(TokenOutput(70, token))
    assert calls.made == [("pause", 70), ("pause", 71)]
    calls.made.clear()
    await stream.next()
    assert calls.made == []
    await stream.next()
    assert calls.made == [("resume", 70), ("resume", 71)]


async def test_others_go_on_where_a_sequence_is_cancelled_that_had_filled_the_buffer(calls: Calls) -> None:
    stream = TokenStream((70, 71), calls, 4)
    for token in range(4):
        stream.push(TokenOutput(70, token))
    calls.made.clear()
    await stream.next()
    stream.cancel(0)
    assert calls.made == [("cancel", 70), ("resume", 71)]


async def test_error_comes_after_the_tokens_before_it(calls: Calls) -> None:
    stream = TokenStream((70, 71), calls, 9)
    stream.push(TokenOutput(70, 5))
    stream.fail(DeviceError("lost"))
    stream.fail(DeviceError("also lost"))
    assert await stream.next() == (0, TokenOutput(70, 5))
    with pytest.raises(DeviceError, match=r"^lost$"):
        await stream.next()


async def test_cancelled_sequence_is_dropped_with_its_tokens(calls: Calls) -> None:
    stream = TokenStream((70, 71), calls, 9)
    stream.push(TokenOutput(70, 5))
    stream.push(TokenOutput(71, 6))
    stream.cancel(0)
    assert await stream.next() == (1, TokenOutput(71, 6))
    stream.close()
    stream.close()
    assert calls.made == [("cancel", 70), ("cancel", 71)]


async def test_stream_at_its_deadline_gives_back_its_sequences_and_then_its_error(calls: Calls) -> None:
    stream = TokenStream((7, 8), calls, 9)
    stream.push(TokenOutput(7, 5))
    stream.expire_at(0.0, DeviceError("late"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert calls.made == [("cancel", 7), ("cancel", 8)]
    assert await stream.next() == (0, TokenOutput(7, 5))
    with pytest.raises(DeviceError, match="late"):
        await stream.next()


async def test_stream_that_was_closed_does_not_expire(calls: Calls) -> None:
    stream = TokenStream((7,), calls, 9)
    stream.expire_at(0.0, DeviceError("late"))
    stream.close()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert calls.made == [("cancel", 7)]


async def test_alternatives_fill_the_mailbox_too(calls: Calls) -> None:
    stream = TokenStream((7,), calls, 8)
    logprobs = Logprobs(-1.0, (1, 2, 3), (-1.0, -2.0, -3.0))
    stream.push(TokenOutput(7, 5, logprobs=logprobs))
    assert calls.made == []
    stream.push(TokenOutput(7, 6, logprobs=logprobs))
    assert calls.made == [("pause", 7)]
    await stream.next()
    assert calls.made == [("pause", 7), ("resume", 7)]
