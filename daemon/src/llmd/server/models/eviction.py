"""Decides which models to unload so that another fits into memory. Pure: sizes in, a decision out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct


class ModelFootprint(Struct, frozen=True):
    """A model and the memory that it takes or will take."""

    name: str
    size_bytes: int
    last_used: float = 0.0
    """Time of last use: the least recently used idle model is unloaded first."""
    busy: bool = False
    """It serves requests: wait for it."""
    pinned: bool = False
    """It is never unloaded for another model."""
    leaving: bool = False
    """It is being unloaded: wait for it."""
    kept_forever: bool = False
    """Its keep-alive is unlimited: it is unloaded last."""


class Fits(Struct, frozen=True):
    """The model fits; ``left_bytes`` stay free."""

    left_bytes: int


class Unload(Struct, frozen=True):
    """Unload these idle models first."""

    names: tuple[str, ...]


class Wait(Struct, frozen=True):
    """Wait until these models have been unloaded or have become idle."""

    names: tuple[str, ...]


class NeverFits(Struct, frozen=True):
    """The model does not fit, even if all models that are not pinned are unloaded."""

    most_bytes: int
    """The memory that can be made available."""
    pinned: tuple[str, ...]


Decision = Fits | Unload | Wait | NeverFits


def decide(need_bytes: int, free_bytes: int, footprints: Sequence[ModelFootprint]) -> Decision:
    """Decide what must happen before ``need_bytes`` can be loaded.

    Models that are being unloaded are waited for first. Then idle models are unloaded, no more than
    needed: least recently used first, those with an unlimited keep-alive last. Pinned models are never
    unloaded.
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
