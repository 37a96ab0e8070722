"""Decides which models to unload so that another fits into memory. Pure: sizes in, a decision out.

Sizes are bytes by memory (`llmd.api.DeviceInfo.memory_id`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

Sizes = Mapping[str, int]


class ModelFootprint(Struct, frozen=True):
    """A model and the memory that it takes or will take."""

    name: str
    sizes: Sizes
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
    """The model fits."""

    left: Sizes
    """The bytes that stay free in each memory that it needs."""


class Unload(Struct, frozen=True):
    """Unload these idle models first."""

    names: tuple[str, ...]


class Wait(Struct, frozen=True):
    """Wait until these models have been unloaded or have become idle."""

    names: tuple[str, ...]


class NeverFits(Struct, frozen=True):
    """The model does not fit, even if all models that are not pinned are unloaded."""

    memory_id: str
    """A memory that is too small."""
    most_bytes: int
    """The bytes of it that can be made available."""
    pinned: tuple[str, ...]


Decision = Fits | Unload | Wait | NeverFits


def decide(need: Sizes, free: Sizes, footprints: Sequence[ModelFootprint]) -> Decision:
    """Decide what must happen before ``need`` can be loaded; ``free`` has every memory that it needs.

    Only models in a memory that is too full matter. Those that are being unloaded are waited for first. Then
    idle models are unloaded: least recently used first, those with an unlimited keep-alive last, and none
    without which the others make enough room. Pinned models are never unloaded.
    """
    if not _short(need, free):
        return Fits({memory_id: free[memory_id] - size for memory_id, size in need.items()})
    leaving = _holders([footprint for footprint in footprints if footprint.leaving], _short(need, free))
    freed = _freed(free, leaving)
    if not _short(need, freed):
        return Wait(_names(leaving))
    movable = [footprint for footprint in footprints if not footprint.leaving and not footprint.pinned]
    most = _freed(freed, movable)
    if short := _short(need, most):
        pinned = [footprint for footprint in footprints if footprint.pinned and not footprint.leaving]
        return NeverFits(short[0], most[short[0]], _names(_holders(pinned, short[:1])))
    chosen, room = [], freed
    idle = (footprint for footprint in movable if not footprint.busy)
    for footprint in sorted(idle, key=lambda footprint: (footprint.kept_forever, footprint.last_used)):
        chosen.append(footprint)
        room = _freed(room, [footprint])
        if not _short(need, room):
            return Unload(_names(_needed(need, freed, chosen)))
    busy = _holders([footprint for footprint in movable if footprint.busy], _short(need, room))
    return Wait(_names([*leaving, *busy]))


def _short(need: Sizes, free: Sizes) -> list[str]:
    """Return the memories that have too little room."""
    return [memory_id for memory_id, size in need.items() if size > free[memory_id]]


def _freed(free: Sizes, footprints: Iterable[ModelFootprint]) -> Sizes:
    """Return what is free once models are unloaded."""
    sizes = [footprint.sizes for footprint in footprints]
    return {memory_id: size + sum(one.get(memory_id, 0) for one in sizes) for memory_id, size in free.items()}


def _needed(need: Sizes, free: Sizes, chosen: Sequence[ModelFootprint]) -> list[ModelFootprint]:
    """Leave out models that the others make unnecessary, the last of those to be unloaded first."""
    needed = list(chosen)
    for footprint in reversed(chosen):
        others = [one for one in needed if one is not footprint]
        if not _short(need, _freed(free, others)):
            needed = others
    return needed


def _holders(footprints: Iterable[ModelFootprint], memory_ids: Sequence[str]) -> list[ModelFootprint]:
    """Return the models that take memory of any of the given kinds."""
    return [one for one in footprints if any(one.sizes.get(memory_id) for memory_id in memory_ids)]


def _names(footprints: Iterable[ModelFootprint]) -> tuple[str, ...]:
    return tuple(footprint.name for footprint in footprints)
