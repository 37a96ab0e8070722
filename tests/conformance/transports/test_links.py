"""The contract of `llmd.api.transport`, tried on every transport."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from llmd.api import LinkClosedError, LinkError, LinkTimeoutError, Transport
from llmd.api.transport import Link, Listener

PATIENCE_S = 10.0
Ends = tuple[Link, Link]


def fill(link: Link, frame: bytes) -> int:
    """Send until the link takes no more; returns how many frames it took."""
    for sent in range(100_000):
        try:
            link.send([frame], 0.0)
        except LinkTimeoutError:
            return sent
    raise AssertionError("the link takes frames without end")


def test_a_frame_arrives_as_its_parts_in_order(ends: Ends) -> None:
    near, far = ends
    near.send([b"head", bytearray(b"er"), memoryview(b" tail")], PATIENCE_S)
    assert bytes(far.receive(PATIENCE_S)) == b"header tail"


def test_frames_arrive_in_order_in_both_directions(ends: Ends) -> None:
    near, far = ends
    for number in range(5):
        near.send([bytes([number])], PATIENCE_S)
        far.send([bytes([number + 100])], PATIENCE_S)
    assert [bytes(far.receive(PATIENCE_S)) for _ in range(5)] == [bytes([number]) for number in range(5)]
    assert [bytes(near.receive(PATIENCE_S)) for _ in range(5)] == [
        bytes([number + 100]) for number in range(5)
    ]


def test_frames_keep_their_borders_and_may_be_empty(ends: Ends) -> None:
    near, far = ends
    for parts in ([b"a", b"b"], [], [b""], [b"c"]):
        near.send(parts, PATIENCE_S)
    assert [bytes(far.receive(PATIENCE_S)) for _ in range(4)] == [b"ab", b"", b"", b"c"]


def test_hidden_states_arrive_bit_for_bit(ends: Ends) -> None:
    near, far = ends
    hidden = np.random.default_rng(1).standard_normal((256, 4096)).astype(np.float32)
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(near.send, [b"frame", hidden.data.cast("B")], PATIENCE_S)
        received = far.receive(PATIENCE_S)
        sent.result()
    assert bytes(received[:5]) == b"frame"
    assert np.array_equal(np.frombuffer(received[5:], np.float32).reshape(hidden.shape), hidden)


def test_the_senders_buffers_may_be_reused(ends: Ends) -> None:
    near, far = ends
    buffer = bytearray(b"first")
    near.send([buffer], PATIENCE_S)
    buffer[:] = b"again"
    assert bytes(far.receive(PATIENCE_S)) == b"first"


def test_the_receiver_owns_its_frame(ends: Ends) -> None:
    near, far = ends
    near.send([b"first"], PATIENCE_S)
    frame = far.receive(PATIENCE_S)
    near.send([b"other"], PATIENCE_S)
    far.receive(PATIENCE_S)
    assert bytes(frame) == b"first"
    assert not frame.readonly


def test_waiting_for_a_frame_ends_in_time(ends: Ends) -> None:
    with pytest.raises(LinkTimeoutError) as caught:
        ends[0].receive(0.01)
    assert caught.value.hint


def test_a_peer_that_takes_nothing_stops_the_sender_and_loses_nothing(ends: Ends) -> None:
    near, far = ends
    sent = fill(near, b"x" * 1024)
    assert sent > 0
    near_frames = [bytes(far.receive(PATIENCE_S)) for _ in range(sent)]
    assert near_frames == [b"x" * 1024] * sent
    near.send([b"there is room again"], PATIENCE_S)
    assert bytes(far.receive(PATIENCE_S)) == b"there is room again"


def test_a_sender_that_waits_goes_on_when_there_is_room(ends: Ends) -> None:
    near, far = ends
    sent = fill(near, b"x" * 1024)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(near.send, [b"last"], PATIENCE_S)
        frames = [bytes(far.receive(PATIENCE_S)) for _ in range(sent + 1)]
        waiting.result()
    assert frames[-1] == b"last"


@pytest.mark.parametrize("closer", [0, 1])
def test_what_was_sent_before_closing_still_arrives(ends: Ends, closer: int) -> None:
    near, far = ends
    near.send([b"last words"], PATIENCE_S)
    ends[closer].close()
    assert bytes(far.receive(PATIENCE_S)) == b"last words"
    with pytest.raises(LinkClosedError):
        far.receive(PATIENCE_S)


@pytest.mark.parametrize("closer", [0, 1])
def test_nobody_can_send_after_either_side_closed(ends: Ends, closer: int) -> None:
    ends[closer].close()
    for end in ends:
        with pytest.raises(LinkClosedError):
            end.send([b"too late"], PATIENCE_S)


@pytest.mark.parametrize(
    "call", [lambda link: link.receive(PATIENCE_S), lambda link: link.send([b"x" * 1024], PATIENCE_S)]
)
def test_closing_wakes_who_waits(ends: Ends, call: Callable[[Link], object]) -> None:
    near, far = ends
    fill(near, b"x" * 1024)
    started = threading.Event()

    def wait() -> object:
        started.set()
        return call(near)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait)
        assert started.wait(PATIENCE_S)
        far.close()
        with pytest.raises(LinkClosedError):
            waiting.result(PATIENCE_S)


def test_closing_twice_is_allowed(ends: Ends, listener: Listener) -> None:
    for thing in (*ends, listener):
        thing.close()
        thing.close()


def test_one_thread_may_send_while_another_receives(ends: Ends) -> None:
    near, far = ends
    frames = [bytes([number % 256]) * 1000 for number in range(500)]

    def echo() -> None:
        for _ in frames:
            far.send([far.receive(PATIENCE_S)], PATIENCE_S)

    def send() -> None:
        for frame in frames:
            near.send([frame], PATIENCE_S)

    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(echo), pool.submit(send)]
        assert [bytes(near.receive(PATIENCE_S)) for _ in frames] == frames
        for one in done:
            one.result()


def test_each_connection_is_a_link_of_its_own(transport: Transport, listener: Listener) -> None:
    first, second = (transport.connect(listener.address, PATIENCE_S) for _ in range(2))
    accepted = [listener.accept(PATIENCE_S) for _ in range(2)]
    first.send([b"first"], PATIENCE_S)
    second.send([b"second"], PATIENCE_S)
    assert [bytes(link.receive(PATIENCE_S)) for link in accepted] == [b"first", b"second"]
    for link in (first, second, *accepted):
        link.close()


def test_an_address_names_its_scheme_and_nobody_else_has_it(transport: Transport, address: str) -> None:
    listeners = [transport.listen(address) for _ in range(2)]
    first, second = (listener.address for listener in listeners)
    assert first.startswith(f"{transport.scheme}://")
    assert first != second
    for listener in listeners:
        listener.close()


def test_an_address_in_use_is_refused(transport: Transport, listener: Listener) -> None:
    with pytest.raises(LinkError) as caught:
        transport.listen(listener.address)
    assert listener.address in caught.value.message


def test_nobody_listening_is_refused(transport: Transport, listener: Listener) -> None:
    listener.close()
    with pytest.raises(LinkError) as caught:
        transport.connect(listener.address, PATIENCE_S)
    assert caught.value.hint


def test_waiting_for_a_peer_ends_in_time(listener: Listener) -> None:
    with pytest.raises(LinkTimeoutError):
        listener.accept(0.01)


def test_a_closed_listener_accepts_nothing_and_leaves_its_links_open(
    transport: Transport, listener: Listener
) -> None:
    near = transport.connect(listener.address, PATIENCE_S)
    far = listener.accept(PATIENCE_S)
    listener.close()
    with pytest.raises(LinkClosedError):
        listener.accept(PATIENCE_S)
    near.send([b"still here"], PATIENCE_S)
    assert bytes(far.receive(PATIENCE_S)) == b"still here"
    near.close()
    far.close()


def test_a_link_that_was_never_accepted_closes_with_its_listener(
    transport: Transport, listener: Listener
) -> None:
    near = transport.connect(listener.address, PATIENCE_S)
    listener.close()
    with pytest.raises(LinkClosedError):
        near.receive(PATIENCE_S)


@pytest.mark.parametrize("address", ["", "pigeon://coop", "no address"])
def test_an_address_of_another_scheme_is_refused(transport: Transport, address: str) -> None:
    for refused in (lambda: transport.listen(address), lambda: transport.connect(address, PATIENCE_S)):
        with pytest.raises(LinkError) as caught:
            refused()
        assert repr(address) in caught.value.message
