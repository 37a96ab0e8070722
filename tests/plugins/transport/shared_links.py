"""Links between two threads or processes, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from llmd.api.transport import Link
from llmd_transport.local_addresses import connect, listen


@contextmanager
def linked() -> Iterator[tuple[Link, Link]]:
    """Yield both ends of a new link."""
    with closing(listen("local://")) as listener:
        near = connect(listener.address, 5.0)
        far = listener.accept(5.0)
    with closing(near), closing(far):
        yield near, far
