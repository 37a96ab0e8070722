"""Entry point of the transport ``local``: links between processes of one machine, at ``local://NAME``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from llmd.api import LinkError, Transport, hookimpl

if TYPE_CHECKING:
    from llmd.api.transport import Link, Listener

LLMD_API = 2


@hookimpl
def llmd_transports() -> Sequence[Transport]:
    return [Transport("local", connect=_connect, listen=_listen)]


def _connect(address: str, timeout_s: float) -> Link:
    _check_system()
    from llmd_transport.local_addresses import connect

    return connect(address, timeout_s)


def _listen(address: str) -> Listener:
    _check_system()
    from llmd_transport.local_addresses import listen

    return listen(address)


def _check_system() -> None:
    if sys.platform != "linux":
        raise LinkError(
            "links through shared memory need Linux", hint="run the model on the devices of one backend"
        )
