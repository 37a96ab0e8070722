"""The module that llmd imports to describe this plugin. It imports only llmd.api and the standard library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llmd.api import Transport, hookimpl

if TYPE_CHECKING:
    from llmd.api.transport import Link, Listener

LLMD_API = 2
SCHEME = "example"


@hookimpl
def llmd_transports() -> Sequence[Transport]:
    return [Transport(SCHEME, connect=connect, listen=listen)]


def connect(address: str, timeout_s: float) -> Link:
    """Connect to a listener."""
    from llmd_transport_example.network import NETWORK

    return NETWORK.connect(address, timeout_s)


def listen(address: str) -> Listener:
    """Listen at an address; ``example://`` without a name picks a free one."""
    from llmd_transport_example.network import NETWORK

    return NETWORK.listen(address)
