"""Checks of transports, on a listener that picks its own address."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from llmd.api.errors import LinkClosedError, LinkError, LinkTimeoutError
from llmd.api.plugins import Transport
from llmd.api.transport import Link, send
from llmd.testing.plugins.results import NotTested, Result, case, unequal

PATIENCE_S = 10.0
FRAMES = (b"a", b"", b"bc", bytes(70_000))


def check_transport(transport: Transport) -> Iterator[Result]:
    """Yield the results for a transport."""
    name, address = f"transport {transport.scheme}", f"{transport.scheme}://"
    try:
        transport.listen(address).close()
    except LinkError as error:
        yield NotTested(name, f"it cannot listen at {address}: {error.message}")
        return
    except Exception:  # noqa: BLE001, S110 - the cases below report it
        pass
    for what, check in CASES.items():
        yield case(f"{name}: {what}", partial(_checked, transport, check))


def _checked(transport: Transport, check: Callable[[Link, Link], str]) -> str:
    with linked(transport) as ends:
        return check(*ends)


@contextmanager
def linked(transport: Transport) -> Iterator[tuple[Link, Link]]:
    """Yield both ends of a new link."""
    listener = transport.listen(f"{transport.scheme}://")
    try:
        near = transport.connect(listener.address, PATIENCE_S)
        try:
            far = listener.accept(PATIENCE_S)
            try:
                yield near, far
            finally:
                far.close()
        finally:
            near.close()
    finally:
        listener.close()


def received(link: Link) -> bytes:
    """Return a copy of the next frame."""
    with link.receive(PATIENCE_S) as data:
        return bytes(data)


def in_order(near: Link, far: Link) -> str:
    """Frames arrive whole and in order, empty ones and large ones too."""
    arrived = []
    for frame in FRAMES:
        send(near, [frame], PATIENCE_S)
        arrived.append(received(far))
    return "" if tuple(arrived) == FRAMES else "frames arrive changed"


def both_ways(near: Link, far: Link) -> str:
    """Both sides may send before the other receives."""
    send(near, [b"there"], PATIENCE_S)
    send(far, [b"back"], PATIENCE_S)
    return unequal((received(far), received(near)), (b"there", b"back"))


def committed_part(near: Link, far: Link) -> str:
    """A frame is the committed part of the reserved buffer."""
    buffer = near.reserve(8, PATIENCE_S)
    buffer[:4] = b"sent"
    near.commit(4)
    return unequal(received(far), b"sent")


def time_limit(_near: Link, far: Link) -> str:
    """Receiving without a frame ends with the time limit."""
    try:
        far.receive(0.0)
    except LinkTimeoutError:
        return ""
    return "receiving returned although no frame was sent, expected a LinkTimeoutError"


def closing(near: Link, far: Link) -> str:
    """Frames sent before closing arrive; then the link is closed. Closing twice is allowed."""
    send(near, [b"last"], PATIENCE_S)
    near.close()
    near.close()
    last = received(far)
    try:
        far.receive(PATIENCE_S)
    except LinkClosedError:
        return unequal(last, b"last")
    return "receiving on a closed link returned, expected a LinkClosedError"


CASES: dict[str, Callable[[Link, Link], str]] = {
    "frames arrive whole and in order": in_order,
    "frames pass in both directions": both_ways,
    "a frame is what was committed": committed_part,
    "receiving has a time limit": time_limit,
    "a closed link says so": closing,
}
