from __future__ import annotations

from llmd.server.models.model_leases import ModelLeases
from tests.serving.model_managers import Timers


class Watched:
    """Leases of a model, their timers, and how often the model expired and became idle."""

    def __init__(self, keep_alive_s: float) -> None:
        self.timers = Timers()
        self.expired = self.idle = 0
        self.leases = ModelLeases(
            keep_alive_s, self._expire, on_idle=self._idle, timer=self.timers, clock=self.timers.clock
        )

    def _expire(self) -> None:
        self.expired += 1

    def _idle(self) -> None:
        self.idle += 1

    def use(self, keep_alive_s: float | None = None, *, seconds: float = 0.0) -> None:
        with self.leases.use(keep_alive_s):
            self.timers.go_on(seconds)


def test_the_clock_starts_when_the_last_request_ends() -> None:
    watched = Watched(10)
    with watched.leases.use():
        watched.use()
        watched.timers.go_on(100)
        assert (watched.idle, watched.expired) == (0, 0)
    assert watched.idle == 1
    watched.timers.go_on(9)
    assert watched.expired == 0
    watched.timers.go_on(1)
    assert watched.expired == 1


def test_a_request_stops_the_clock_and_starts_it_anew() -> None:
    watched = Watched(10)
    watched.use()
    watched.timers.go_on(9)
    watched.use(seconds=100)
    watched.timers.go_on(9)
    assert watched.expired == 0
    watched.timers.go_on(1)
    assert watched.expired == 1


def test_a_request_that_says_how_long_replaces_what_held() -> None:
    watched = Watched(10)
    watched.use(60)
    watched.use()
    watched.timers.go_on(59)
    assert watched.expired == 0
    watched.timers.go_on(1)
    assert watched.expired == 1


def test_zero_is_until_the_request_ends() -> None:
    watched = Watched(10)
    with watched.leases.use(0):
        watched.timers.go_on(5)
        assert watched.expired == 0
    watched.timers.go_on(0)
    assert watched.expired == 1


def test_negative_is_for_ever() -> None:
    watched = Watched(10)
    watched.use(-1)
    watched.timers.go_on(1e9)
    assert (watched.expired, watched.leases.remaining_s) == (0, None)


def test_a_pinned_model_stays_until_a_request_says_otherwise() -> None:
    watched = Watched(10)
    watched.use()
    watched.leases.pin()
    watched.use()
    watched.timers.go_on(1e9)
    assert (watched.expired, watched.leases.pinned) == (0, True)
    watched.use(5)
    assert not watched.leases.pinned
    watched.timers.go_on(5)
    assert watched.expired == 1


def test_a_model_that_is_no_longer_pinned_follows_the_settings() -> None:
    watched = Watched(10)
    watched.leases.pin()
    watched.leases.unpin()
    watched.timers.go_on(9)
    assert (watched.expired, watched.leases.pinned) == (0, False)
    watched.timers.go_on(1)
    assert watched.expired == 1
    other = Watched(10)
    other.use(5)
    other.leases.unpin()
    assert other.leases.keep_alive_s == 5


def test_what_was_ended_does_not_expire() -> None:
    watched = Watched(10)
    watched.use()
    watched.leases.end()
    watched.timers.go_on(10)
    with watched.leases.use(1):
        watched.leases.end()
    watched.timers.go_on(10)
    assert watched.expired == 0


def test_what_remains_is_counted_from_the_last_use() -> None:
    watched = Watched(10)
    with watched.leases.use():
        watched.timers.go_on(3)
        assert watched.leases.remaining_s == 10
    watched.timers.go_on(4)
    assert watched.leases.remaining_s == 6
    assert watched.leases.last_used == 3


def test_a_new_default_holds_at_once_but_for_what_a_request_has_set() -> None:
    watched, asked, pinned = Watched(10), Watched(10), Watched(10)
    watched.use()
    asked.use(60)
    pinned.leases.pin()
    for one in (watched, asked, pinned):
        one.leases.set_default(20)
        one.timers.go_on(19)
        assert one.expired == 0
        one.timers.go_on(1)
    assert [one.expired for one in (watched, asked, pinned)] == [1, 0, 0]
    busy = Watched(10)
    with busy.leases.use():
        busy.leases.set_default(5)
        busy.timers.go_on(100)
        assert busy.expired == 0
    busy.timers.go_on(5)
    assert busy.expired == 1


def test_each_name_has_its_own_default_until_a_request_says_otherwise() -> None:
    watched = Watched(10)
    for own_s in (3, 10):
        with watched.leases.use(own_default_s=own_s):
            pass
        assert watched.leases.remaining_s == own_s
    with watched.leases.use(60):
        pass
    with watched.leases.use(own_default_s=3):
        pass
    assert watched.leases.remaining_s == 60
    watched.leases.pin()
    with watched.leases.use(own_default_s=3):
        pass
    assert watched.leases.pinned
