"""Which models must go so that another fits into memory. Pure: sizes in, a decision out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct


class ModelFootprint(Struct, frozen=True):
    """A model and its bytes, as they are or as they will be.

    ``last_used`` orders idle models. A busy one is waited for, a leaving one too; a pinned one is never sent away.
    """

    name: str
    size_bytes: int
    last_used: float = 0.0
    busy: bool = False
    pinned: bool = False
    leaving: bool = False
    kept_forever: bool = False


class Fits(Struct, frozen=True):
    """It fits; ``left_bytes`` stay free."""

    left_bytes: int


class Unload(Struct, frozen=True):
    """These idle models must go first."""

    names: tuple[str, ...]


class Wait(Struct, frozen=True):
    """It fits once these have left or have answered."""

    names: tuple[str, ...]


class NeverFits(Struct, frozen=True):
    """It does not fit beside the pinned models, whatever else goes; ``most_bytes`` can be had at most."""

    most_bytes: int
    pinned: tuple[str, ...]


Decision = Fits | Unload | Wait | NeverFits


def decide(need_bytes: int, free_bytes: int, footprints: Sequence[ModelFootprint]) -> Decision:
    """Decide what must happen before ``need_bytes`` can be loaded.

    What leaves anyway is waited for first. Of the idle models the least recently used goes first, and those that were
    to stay for ever go last; no more of them than needed. Pinned ones never go.
    """
    if need_bytes <= free_bytes:
        return Fits(free_bytes - need_bytes)
    leaving = [footprint for footprint in footprints if footprint.leaving]
    freed = free_bytes + sum(footprint.size_bytes for footprint in leaving)
    if need_bytes <= freed:
        return Wait(_names(leaving))
    movable = [footprint for footprint in footprints if not footprint.leaving and not footprint.pinned]
    most = freed + sum(footprint.size_bytes for footprint in movable)
    if need_bytes > most:
        return NeverFits(
            most, _names(footprint for footprint in footprints if footprint.pinned and not footprint.leaving)
        )
    chosen = []
    idle = (footprint for footprint in movable if not footprint.busy)
    for footprint in sorted(idle, key=lambda footprint: (footprint.kept_forever, footprint.last_used)):
        chosen.append(footprint)
        freed += footprint.size_bytes
        if need_bytes <= freed:
            return Unload(_names(chosen))
    return Wait(_names([*leaving, *(footprint for footprint in movable if footprint.busy)]))


def _names(footprints: Iterable[ModelFootprint]) -> tuple[str, ...]:
    return tuple(footprint.name for footprint in footprints)
