"""The transports that every contract test runs on. A new transport is one more parameter."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import pytest

from llmd.api import Transport
from llmd.api.transport import Link, Listener

# The module of each transport, and an address where it may listen.
TRANSPORTS = {"local": ("llmd_transport.local", "local://")}


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> Transport:
    module, _ = TRANSPORTS[request.param]
    (described,) = import_module(module).llmd_transports()
    assert isinstance(described, Transport)
    assert described.scheme == request.param
    return described


@pytest.fixture
def address(transport: Transport) -> str:
    """An address whose listener gets a free name or port."""
    return TRANSPORTS[transport.scheme][1]


@pytest.fixture
def listener(transport: Transport, address: str) -> Iterator[Listener]:
    listener = transport.listen(address)
    yield listener
    listener.close()


@pytest.fixture
def ends(transport: Transport, listener: Listener) -> Iterator[tuple[Link, Link]]:
    """Both ends of a link: the one that connected and the one that was accepted."""
    ends = transport.connect(listener.address, 5.0), listener.accept(5.0)
    yield ends
    for end in ends:
        end.close()
