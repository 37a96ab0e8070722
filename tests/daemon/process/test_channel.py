from __future__ import annotations

import fcntl
import resource
import socket
from collections.abc import Iterator
from typing import cast

import msgspec
import pytest

from llmd.api.messages import Cancel, FromFront, PackedVocabulary, Vocabulary
from llmd.api.reports import GetReport, Report
from llmd.process.channel import Channel
from llmd.process.frames import encode_frame

BEYOND_SELECT = 1024


def from_front(sock: socket.socket) -> Channel[FromFront]:
    return Channel(sock, cast("type[FromFront]", FromFront))


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Open as many files as a daemon with more than a thousand clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, BEYOND_SELECT + 1), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, Channel[FromFront]]]:
    front, engine = socket.socketpair()
    with front, engine:
        yield front, from_front(engine)


@pytest.mark.usefixtures("many_descriptors")
def test_the_descriptor_may_have_any_number() -> None:
    front, inherited = socket.socketpair()
    with front, inherited:
        number = fcntl.fcntl(inherited.fileno(), fcntl.F_DUPFD_CLOEXEC, BEYOND_SELECT)
        with socket.socket(fileno=number) as engine:
            front.sendall(encode_frame(GetReport()))
            assert from_front(engine).receive(wait=False) == [GetReport()]


def test_without_waiting_nothing_may_come(pair: tuple[socket.socket, Channel[FromFront]]) -> None:
    assert pair[1].receive(wait=False) == []


def test_waiting_takes_everything_that_has_come(pair: tuple[socket.socket, Channel[FromFront]]) -> None:
    front, channel = pair
    front.sendall(encode_frame(GetReport()) + encode_frame(Cancel(4)))
    assert channel.receive(wait=True) == [GetReport(), Cancel(4)]


def test_the_first_message_leaves_the_others_for_later(
    pair: tuple[socket.socket, Channel[FromFront]],
) -> None:
    front, channel = pair
    front.sendall(encode_frame(Cancel(1)) + encode_frame(Cancel(2)) + encode_frame(Cancel(3)))
    assert channel.receive_first() == Cancel(1)
    assert channel.receive(wait=True) == [Cancel(2), Cancel(3)]


def test_half_a_frame_waits_for_the_rest(pair: tuple[socket.socket, Channel[FromFront]]) -> None:
    front, channel = pair
    frame = encode_frame(Cancel(9))
    front.sendall(frame[:5])
    assert channel.receive(wait=False) == []
    front.sendall(frame[5:])
    assert channel.receive(wait=True) == [Cancel(9)]


def test_a_front_that_has_gone_closes_the_channel(pair: tuple[socket.socket, Channel[FromFront]]) -> None:
    front, channel = pair
    front.sendall(encode_frame(GetReport()))
    front.close()
    assert channel.receive(wait=True) == [GetReport()]
    assert channel.receive(wait=True) == []
    assert channel.closed
    assert channel.receive_first() is None


def test_sent_messages_are_frames(pair: tuple[socket.socket, Channel[FromFront]]) -> None:
    front, channel = pair
    report = Report(1, 0, 0, 2, 0, 3, 0, 0.5, 0.25, 0, 8)
    channel.send(report)
    assert front.recv(4096) == encode_frame(report)


def test_the_tokens_of_a_vocabulary_are_handed_on_as_they_came(
    pair: tuple[socket.socket, Channel[FromFront]],
) -> None:
    front, channel = pair
    vocabulary = Vocabulary((b"a", b"", b"<end>"), (2,), (2,))
    front.sendall(encode_frame(vocabulary))
    (received,) = channel.receive(wait=True)
    assert isinstance(received, PackedVocabulary)
    assert (received.special_ids, received.end_ids) == ((2,), (2,))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(received), type=Vocabulary) == vocabulary
