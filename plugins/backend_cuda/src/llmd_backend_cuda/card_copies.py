"""Copies between main memory and a card, and a stream of them next to that of the runtime."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd_backend_cuda.card import Card, CardEvent, Owned, is_pinned
from llmd_backend_cuda.runtime import Event, Memory


class CardStream:
    """A stream of a card, and its points.

    Raises:
        DeviceError: the card failed.
    """

    def __init__(self, card: Card) -> None:
        self._card = card
        stream = card.call(card.api.streamCreateWithFlags, card.api.streamNonBlocking)
        self._stream = Owned(card, stream, card.api.streamDestroy)

    @property
    def card(self) -> Card:
        """The card that the stream belongs to."""
        return self._card

    def wait_for(self, event: Event) -> None:
        """Let what follows begin once an event of another stream, perhaps of another card, is reached.

        Raises:
            DeviceError: one of the cards failed.
        """
        assert isinstance(event, CardEvent), "the event is of another runtime"
        other = None if event.card is self._card else event.card
        self._card.call(self._card.api.streamWaitEvent, self._stream.value, event.value, 0, other=other)

    def record(self) -> CardEvent:
        """Return the point after everything that was called before.

        Raises:
            DeviceError: the card failed.
        """
        return CardEvent.recorded(self._card, self._stream, self._card.api.eventDisableTiming)

    def timestamp(self) -> CardEvent:
        """Return the same point, with its time.

        Raises:
            DeviceError: the card failed.
        """
        return CardEvent.recorded(self._card, self._stream, self._card.api.eventDefault)


class CardCopies(CardStream):
    """See `llmd_backend_cuda.runtime.CopyStream`."""

    def upload(self, memory: Memory, offset: int, array: NDArray[np.generic]) -> None:
        """Begin to copy a pinned array.

        Raises:
            ValueError: it does not fit, or is not contiguous or not pinned.
            DeviceError: the card failed.
        """
        check_copy(memory, offset, array)
        if not is_pinned(array):
            raise ValueError("only pinned arrays are copied while the card computes")
        api = self._card.api
        to, stream = memory.pointer + offset, self._stream.value
        self._card.call(api.memcpyAsync, to, address_of(array), array.nbytes, api.memcpyHostToDevice, stream)


def check_copy(memory: Memory, offset: int, array: NDArray[np.generic]) -> None:
    """Check that an array can be copied to or from memory.

    Raises:
        ValueError: it does not fit, or is not contiguous.
    """
    if not array.flags.c_contiguous:
        raise ValueError("the array is not C-contiguous")
    if offset < 0 or offset + array.nbytes > memory.num_bytes:
        raise ValueError(
            f"bytes {offset} to {offset + array.nbytes} are not in {memory.num_bytes} bytes of memory"
        )


def address_of(array: NDArray[np.generic]) -> int:
    """Return the address of an array's first element."""
    address: int = array.__array_interface__["data"][0]
    return address
