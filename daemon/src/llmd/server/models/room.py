"""Which models must go so that another fits into memory. Pure: sizes in, a decision out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct


class Tenant(Struct, frozen=True):
    """A model and its bytes, as they are or as they will be.

    ``last_used`` orders idle models. A busy one is waited for, a leaving one too; a pinned one is never sent away.
    """

    name: str
    size_bytes: int
    last_used: float = 0.0
    busy: bool = False
    pinned: bool = False
    leaving: bool = False
    for_ever: bool = False


class Enough(Struct, frozen=True):
    """It fits; ``left_bytes`` stay free."""

    left_bytes: int


class Unload(Struct, frozen=True):
    """These idle models must go first."""

    names: tuple[str, ...]


class Wait(Struct, frozen=True):
    """It fits once these have left or have answered."""

    names: tuple[str, ...]


class Never(Struct, frozen=True):
    """It does not fit beside the pinned models, whatever else goes; ``most_bytes`` can be had at most."""

    most_bytes: int
    pinned: tuple[str, ...]


Decision = Enough | Unload | Wait | Never


def make_room(need_bytes: int, free_bytes: int, tenants: Sequence[Tenant]) -> Decision:
    """Decide what must happen before ``need_bytes`` can be loaded.

    What leaves anyway is waited for first. Of the idle models the least recently used goes first, and those that were
    to stay for ever go last; no more of them than needed. Pinned ones never go.
    """
    if need_bytes <= free_bytes:
        return Enough(free_bytes - need_bytes)
    leaving = [tenant for tenant in tenants if tenant.leaving]
    freed = free_bytes + sum(tenant.size_bytes for tenant in leaving)
    if need_bytes <= freed:
        return Wait(_names(leaving))
    movable = [tenant for tenant in tenants if not tenant.leaving and not tenant.pinned]
    most = freed + sum(tenant.size_bytes for tenant in movable)
    if need_bytes > most:
        return Never(most, _names(tenant for tenant in tenants if tenant.pinned and not tenant.leaving))
    chosen = []
    idle = (tenant for tenant in movable if not tenant.busy)
    for tenant in sorted(idle, key=lambda tenant: (tenant.for_ever, tenant.last_used)):
        chosen.append(tenant)
        freed += tenant.size_bytes
        if need_bytes <= freed:
            return Unload(_names(chosen))
    return Wait(_names([*leaving, *(tenant for tenant in movable if tenant.busy)]))


def _names(tenants: Iterable[Tenant]) -> tuple[str, ...]:
    return tuple(tenant.name for tenant in tenants)
