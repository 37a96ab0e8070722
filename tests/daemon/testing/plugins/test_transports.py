"""A transport must carry frames as its contract says."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from llmd.api import LinkClosedError, LinkError, Transport
from llmd.api.transport import Frame, Link
from llmd.testing.conformance import CaseResult
from llmd.testing.plugins.results import NotTested
from llmd.testing.plugins.transports import CASES, check_transport
from llmd_transport.local import llmd_transports
from llmd_transport.shared_memory_link import SharedMemoryLink


@pytest.fixture
def local() -> Transport:
    (transport,) = llmd_transports()
    return transport


def problems(transport: Transport) -> dict[str, str]:
    results = [result for result in check_transport(transport) if isinstance(result, CaseResult)]
    assert [result.name for result in results] == [f"transport local: {what}" for what in CASES]
    return {result.name.partition(": ")[2]: result.problem for result in results if result.problem}


def connecting(local: Transport, wrap: Callable[[Link], Link]) -> Transport:
    """The transport with another near end."""
    return msgspec.structs.replace(local, connect=lambda *given: wrap(local.connect(*given)))


class Wrapped:
    """A link that passes everything on."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def reserve(self, num_bytes: int, timeout_s: float) -> memoryview:
        return self._link.reserve(num_bytes, timeout_s)

    def commit(self, num_bytes: int) -> None:
        self._link.commit(num_bytes)

    def receive(self, timeout_s: float) -> Frame:
        return self._link.receive(timeout_s)

    def close(self) -> None:
        self._link.close()


class CommitsAll(Wrapped):
    """Sends the whole buffer, however much was committed."""

    def reserve(self, num_bytes: int, timeout_s: float) -> memoryview:
        self._reserved = num_bytes
        return super().reserve(num_bytes, timeout_s)

    def commit(self, num_bytes: int) -> None:
        super().commit(self._reserved)


class StaysOpen(Wrapped):
    """Sends an empty frame in place of closing, while the peer is there."""

    def close(self) -> None:
        try:
            super().reserve(0, 1.0)
            super().commit(0)
        except LinkClosedError:
            super().close()


def test_a_sound_transport_passes(local: Transport) -> None:
    assert problems(local) == {}
    assert problems(connecting(local, Wrapped)) == {}


def test_each_fault_is_found(local: Transport) -> None:
    assert set(problems(connecting(local, CommitsAll))) == {"a frame is what was committed"}
    assert set(problems(connecting(local, StaysOpen))) == {"a closed link says so"}


def test_a_listener_that_waits_for_nothing_is_found(
    local: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive = SharedMemoryLink.receive

    def impatient(link: SharedMemoryLink, timeout_s: float) -> Frame:
        return receive(link, timeout_s) if timeout_s else Frame(memoryview(b""))

    monkeypatch.setattr(SharedMemoryLink, "receive", impatient)
    assert set(problems(local)) == {"receiving has a time limit"}


def test_a_transport_that_needs_an_address_is_not_tested(local: Transport) -> None:
    def listen(address: str) -> None:
        raise LinkError(f"{address} has no port")

    (skipped,) = check_transport(Transport("made", local.connect, listen))  # type: ignore[arg-type]
    assert isinstance(skipped, NotTested)
    assert skipped.reason == "it cannot listen at made://: made:// has no port"
