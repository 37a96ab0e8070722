from __future__ import annotations

import asyncio

import pytest

from llmd.api.errors import DeviceError
from llmd.api.results import Started, TextVector
from llmd.server.engines.mailbox import Mailbox


class Cancelled:
    """Records which requests a mailbox cancels."""

    def __init__(self) -> None:
        self.ids: list[int] = []

    def cancel(self, request_id: int) -> None:
        self.ids.append(request_id)


def test_mailbox_hands_out_what_came_with_the_index_of_its_sequence() -> None:
    async def main() -> None:
        mailbox: Mailbox[TextVector] = Mailbox((70, 71), Cancelled())
        waiting = asyncio.Task(mailbox.next(), name="reader")
        await asyncio.sleep(0)
        mailbox.push(TextVector(71, b"b"))
        mailbox.push(TextVector(70, b"a"))
        assert await waiting == (1, TextVector(71, b"b"))
        assert await mailbox.next() == (0, TextVector(70, b"a"))

    asyncio.run(main())


def test_only_what_a_sequence_found_when_it_first_began_counts_as_cached() -> None:
    """When it resumes after a preemption or in a new engine, it finds the tokens that it computed itself."""
    mailbox: Mailbox[TextVector] = Mailbox((70, 71), Cancelled())
    for started in (Started(71, 16), Started(71, 48), Started(70, 0), Started(70, 32), Started(99, 16)):
        mailbox.begin(started)
    assert mailbox.cached_tokens == {0: 0, 1: 16}


def test_what_came_before_a_failure_is_still_read() -> None:
    async def main() -> None:
        mailbox: Mailbox[TextVector] = Mailbox((70, 71), Cancelled())
        mailbox.push(TextVector(70, b"a"))
        mailbox.fail(DeviceError("first"))
        mailbox.fail(DeviceError("second"))
        await mailbox.next()
        with pytest.raises(DeviceError, match="first"):
            await mailbox.next()

    asyncio.run(main())


def test_closing_cancels_every_sequence_once() -> None:
    cancelled = Cancelled()
    mailbox: Mailbox[TextVector] = Mailbox((70, 71), cancelled)
    mailbox.close()
    mailbox.close()
    assert cancelled.ids == [70, 71]


def test_every_sequence_ends_at_the_deadline() -> None:
    async def main() -> None:
        cancelled = Cancelled()
        mailbox: Mailbox[TextVector] = Mailbox((70, 71), cancelled)
        mailbox.expire_at(asyncio.get_running_loop().time(), DeviceError("too late"))
        with pytest.raises(DeviceError, match="too late"):
            await mailbox.next()
        assert cancelled.ids == [70, 71]

    asyncio.run(main())
