"""Frames arrive; a closed link says so."""

from __future__ import annotations

import pytest

from llmd.api import LinkClosedError
from llmd.api.transport import send
from llmd_transport_example.plugin import llmd_transports


def test_a_frame_arrives_at_the_other_end() -> None:
    (transport,) = llmd_transports()
    listener = transport.listen("example://")
    near, far = transport.connect(listener.address, 1.0), listener.accept(1.0)
    send(near, [b"head", b"er"], 1.0)
    with far.receive(1.0) as data:
        assert bytes(data) == b"header"
    near.close()
    with pytest.raises(LinkClosedError):
        far.receive(1.0)
    listener.close()
