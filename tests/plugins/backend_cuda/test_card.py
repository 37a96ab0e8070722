"""Errors of the card get the class that the engine acts on, and waits have a limit."""

from __future__ import annotations

import time

import numpy as np
import pytest

from llmd.api import DeviceError, DeviceLostError, DeviceMemoryError
from llmd_backend_cuda.card import Card, CardEvent, CardMemory, Owned, PinnedMemory, is_pinned
from llmd_backend_cuda.driver import DriverError
from tests.cuda.host_cuda import ILLEGAL_ADDRESS, LAUNCH_OUT_OF_RESOURCES, HostCuda, HostCudaError


@pytest.fixture
def api() -> HostCuda:
    return HostCuda()


@pytest.fixture
def card(api: HostCuda) -> Card:
    return Card(2, api, None)  # type: ignore[arg-type] # nothing here is launched


def make_event(api: HostCuda, card: Card) -> CardEvent:
    """Return a recorded event."""
    return CardEvent(card, api.eventCreateWithFlags(api.eventDisableTiming))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (2, DeviceMemoryError),
        (700, DeviceLostError),  # a kernel read or wrote an invalid address
        (702, DeviceLostError),  # a kernel took too long
        (719, DeviceLostError),  # a kernel failed otherwise
        (214, DeviceLostError),  # memory is broken
        (100, DeviceLostError),  # there is no card any more
        (46, DeviceLostError),  # the card is not available
        (999, DeviceLostError),
        (1, DeviceError),  # an argument is wrong
        (701, DeviceError),  # a launch asks for too much
    ],
)
@pytest.mark.parametrize("kind", [HostCudaError, lambda status: DriverError(status, f"status {status}")])
def test_an_error_has_the_class_of_its_number(
    card: Card, kind: type[HostCudaError], status: int, expected: type[DeviceError]
) -> None:
    def call() -> None:
        raise kind(status)

    with pytest.raises(DeviceError, match=f"cuda:2: .*status {status}") as caught:
        card.call(call)
    assert type(caught.value) is expected
    assert caught.value.hint
    assert card.is_lost == (expected is DeviceLostError)


def test_what_is_owned_is_freed_with_the_last_reference(api: HostCuda, card: Card) -> None:
    stream = Owned(card, api.streamCreateWithFlags(1), api.streamDestroy)
    memory = CardMemory(card, api.malloc(64), 64)
    same = stream
    del stream, memory
    assert list(api.alive.values()) == ["stream"]
    del same
    assert not api.alive


def test_freeing_fails_silently(api: HostCuda, card: Card) -> None:
    memory = CardMemory(card, api.malloc(64), 64)
    api.status = LAUNCH_OUT_OF_RESOURCES
    del memory
    assert len(api.alive) == 1


def test_nothing_of_a_lost_card_is_freed(api: HostCuda, card: Card) -> None:
    memory = CardMemory(card, api.malloc(64), 64)
    error = card.lost("it hangs")
    assert error.devices == ("cuda:2",)
    del memory
    assert len(api.alive) == 1


def test_nothing_is_called_on_a_lost_card(api: HostCuda, card: Card) -> None:
    """Calls could wait for a kernel that never ends."""
    card.lost("it hangs")
    api.devices.clear()
    with pytest.raises(DeviceLostError, match="cuda:2: it hangs"):
        card.call(api.memGetInfo)
    assert api.devices == []


def test_all_views_of_pinned_memory_are_pinned(api: HostCuda, card: Card) -> None:
    array = np.asarray(PinnedMemory(card, api.hostAlloc(64, 0), 64))
    assert array.nbytes == 64
    array[:] = 5
    assert array.sum() == 320
    assert all(map(is_pinned, (array, array[8:], array.view(np.float32)[2:].reshape(2, 7))))
    assert not any(map(is_pinned, (array.copy(), np.zeros(4), np.zeros(4)[1:])))


def test_a_wait_ends_when_the_event_is_reached(api: HostCuda, card: Card) -> None:
    api.busy = 20
    assert make_event(api, card).wait(60)
    assert api.busy == -1


def test_a_wait_ends_when_its_time_is_over(api: HostCuda, card: Card) -> None:
    api.busy = 1 << 40
    assert not make_event(api, card).wait(0)
    start_s = time.perf_counter()
    assert not make_event(api, card).wait(0.02)
    assert time.perf_counter() - start_s >= 0.02


def test_a_kernel_that_failed_shows_in_the_wait(
    api: HostCuda, card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "eventQuery", lambda _event: ILLEGAL_ADDRESS)
    with pytest.raises(DeviceLostError):
        make_event(api, card).wait(1)


def test_the_time_between_events_is_in_seconds(api: HostCuda, card: Card) -> None:
    stream, events = api.streamCreateWithFlags(1), []
    for api.now_s in (5.0, 5.25):
        events.append(CardEvent(card, api.eventCreateWithFlags(api.eventDefault)))
        api.eventRecord(events[-1].value, stream)
    assert events[1].seconds_after(events[0]) == 0.25
