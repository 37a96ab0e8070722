"""The contract of `llmd.api.transport`, tried on every transport."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from llmd.api import LinkClosedError, LinkError, LinkTimeoutError, Transport
from llmd.api.transport import Link, Listener, send

PATIENCE_S = 10.0
Ends = tuple[Link, Link]


def fill(link: Link, frame: bytes) -> int:
    """Send until the link takes no more; returns how many frames it took."""
    for sent in range(100_000):
        try:
            send(link, [frame], 0.0)
        except LinkTimeoutError:
            return sent
    raise AssertionError("the link takes frames without end")


def received(link: Link) -> bytes:
    """Return a copy of the next frame."""
    with link.receive(PATIENCE_S) as data:
        return bytes(data)


def test_a_frame_arrives_as_its_parts_in_order(ends: Ends) -> None:
    near, far = ends
    send(near, [b"head", bytearray(b"er"), memoryview(b" tail")], PATIENCE_S)
    assert received(far) == b"header tail"


def test_frames_arrive_in_order_in_both_directions(ends: Ends) -> None:
    near, far = ends
    for number in range(5):
        send(near, [bytes([number])], PATIENCE_S)
        send(far, [bytes([number + 100])], PATIENCE_S)
    assert [received(far) for _ in range(5)] == [bytes([number]) for number in range(5)]
    assert [received(near) for _ in range(5)] == [bytes([number + 100]) for number in range(5)]


def test_frames_keep_their_borders_and_may_be_empty(ends: Ends) -> None:
    near, far = ends
    for parts in ([b"a", b"b"], [], [b""], [b"c"]):
        send(near, parts, PATIENCE_S)
    assert [received(far) for _ in range(4)] == [b"ab", b"", b"", b"c"]


def test_hidden_states_arrive_bit_for_bit(ends: Ends) -> None:
    near, far = ends
    hidden = np.random.default_rng(1).standard_normal((256, 4096)).astype(np.float32)
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(send, near, [b"frame", hidden.data.cast("B")], PATIENCE_S)
        frame = far.receive(PATIENCE_S)
        sent.result()
    with frame as data:
        assert bytes(data[:5]) == b"frame"
        assert np.array_equal(np.frombuffer(data[5:], np.float32).reshape(hidden.shape), hidden)


def test_the_senders_buffers_may_be_reused(ends: Ends) -> None:
    near, far = ends
    buffer = bytearray(b"first")
    send(near, [buffer], PATIENCE_S)
    buffer[:] = b"again"
    assert received(far) == b"first"


def test_a_frame_is_what_was_committed_of_the_reserved_buffer(ends: Ends) -> None:
    near, far = ends
    near.reserve(7, PATIENCE_S)[:] = b"dropped"
    buffer = near.reserve(8, PATIENCE_S)
    assert buffer.nbytes == 8
    buffer[:4] = b"sent"
    near.commit(4)
    assert received(far) == b"sent"


def test_no_more_is_committed_than_was_reserved(ends: Ends) -> None:
    near, far = ends
    with pytest.raises(ValueError, match="a frame of 0 bytes"):
        near.commit(0)
    near.reserve(4, PATIENCE_S)
    for num_bytes in (-1, 5):
        with pytest.raises(ValueError, match=f"a frame of {num_bytes} bytes"):
            near.commit(num_bytes)
    near.commit(4)
    with pytest.raises(ValueError, match="a frame of 4 bytes"):
        near.commit(4)
    assert received(far) == bytes(4)


def test_frames_are_leased_until_they_are_released(ends: Ends) -> None:
    near, far = ends
    send(near, [b"first"], PATIENCE_S)
    send(near, [b"other"], PATIENCE_S)
    first, other = far.receive(PATIENCE_S), far.receive(PATIENCE_S)
    near.close()
    assert (bytes(first.data), bytes(other.data)) == (b"first", b"other")
    assert first.data.readonly
    first.release()
    with pytest.raises(ValueError, match="released"):
        bytes(first.data)
    assert bytes(other.data) == b"other"
    other.release()


def test_a_leased_frame_keeps_its_bytes_while_the_peer_goes_on_sending(ends: Ends) -> None:
    near, far = ends
    send(near, [b"first"], PATIENCE_S)
    with far.receive(PATIENCE_S) as data:
        for number in range(3):
            send(near, [bytes([number]) * 5], PATIENCE_S)
        assert bytes(data) == b"first"
    assert [received(far) for _ in range(3)] == [bytes([number]) * 5 for number in range(3)]


def test_waiting_for_a_frame_ends_in_time(ends: Ends) -> None:
    with pytest.raises(LinkTimeoutError) as caught:
        ends[0].receive(0.01)
    assert caught.value.hint


def test_a_peer_that_takes_nothing_stops_the_sender_and_loses_nothing(ends: Ends) -> None:
    near, far = ends
    sent = fill(near, b"x" * 1024)
    assert sent > 0
    near_frames = [received(far) for _ in range(sent)]
    assert near_frames == [b"x" * 1024] * sent
    send(near, [b"there is room again"], PATIENCE_S)
    assert received(far) == b"there is room again"


def test_a_sender_that_waits_goes_on_when_there_is_room(ends: Ends) -> None:
    near, far = ends
    sent = fill(near, b"x" * 1024)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(send, near, [b"last"], PATIENCE_S)
        frames = [received(far) for _ in range(sent + 1)]
        waiting.result()
    assert frames[-1] == b"last"


@pytest.mark.parametrize("closer", [0, 1])
def test_what_was_sent_before_closing_still_arrives(ends: Ends, closer: int) -> None:
    near, far = ends
    send(near, [b"last words"], PATIENCE_S)
    ends[closer].close()
    assert received(far) == b"last words"
    with pytest.raises(LinkClosedError):
        far.receive(PATIENCE_S)


@pytest.mark.parametrize("closer", [0, 1])
def test_nobody_can_send_after_either_side_closed(ends: Ends, closer: int) -> None:
    ends[closer].close()
    for end in ends:
        with pytest.raises(LinkClosedError):
            send(end, [b"too late"], PATIENCE_S)


@pytest.mark.parametrize(
    "call", [lambda link: link.receive(PATIENCE_S), lambda link: link.reserve(1024, PATIENCE_S)]
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
            with far.receive(PATIENCE_S) as data:
                send(far, [data], PATIENCE_S)

    def send_all() -> None:
        for frame in frames:
            send(near, [frame], PATIENCE_S)

    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(echo), pool.submit(send_all)]
        assert [received(near) for _ in frames] == frames
        for one in done:
            one.result()


def test_each_connection_is_a_link_of_its_own(transport: Transport, listener: Listener) -> None:
    first, second = (transport.connect(listener.address, PATIENCE_S) for _ in range(2))
    accepted = [listener.accept(PATIENCE_S) for _ in range(2)]
    send(first, [b"first"], PATIENCE_S)
    send(second, [b"second"], PATIENCE_S)
    assert [received(link) for link in accepted] == [b"first", b"second"]
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
    send(near, [b"still here"], PATIENCE_S)
    assert received(far) == b"still here"
    near.close()
    far.close()


def test_a_link_that_was_never_accepted_closes_with_its_listener(
    transport: Transport, listener: Listener
) -> None:
    near = transport.connect(listener.address, PATIENCE_S)
    listener.close()
    with pytest.raises(LinkClosedError):
        near.receive(PATIENCE_S)
    near.close()


@pytest.mark.parametrize("address", ["", "pigeon://coop", "no address"])
def test_an_address_of_another_scheme_is_refused(transport: Transport, address: str) -> None:
    for refused in (lambda: transport.listen(address), lambda: transport.connect(address, PATIENCE_S)):
        with pytest.raises(LinkError) as caught:
            refused()
        assert repr(address) in caught.value.message
