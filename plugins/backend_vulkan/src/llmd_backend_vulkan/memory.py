"""Memory of the device, cut from few buffers: shaders are prepared for each combination of buffers."""

from __future__ import annotations

import weakref

import numpy as np
from numpy.typing import NDArray

from llmd_backend_vulkan.commands import WORD, Buffer, Dispatch, Shader, Words
from llmd_backend_vulkan.runtime import Runtime

ALIGNMENT = 64
"""Regions begin at multiples of this many words."""

_FIRST_WORDS = 4 << 20
_MOST_WORDS = 128 << 20
_STAGING_WORDS = 4 << 20
_GROUPS = 256
_THREADS = 64
_COPY, _COPY_STEP, _FILL = Shader("copy_words"), Shader("copy_step"), Shader("fill_words")


class Region:
    """Consecutive words of a buffer, given back with the last reference."""

    def __init__(self, buffer: Buffer, at: int, num_words: int) -> None:
        self.buffer = buffer
        self.at = at
        """Index of its first word."""
        self.num_words = num_words


class Arena:
    """Buffers of a device. Each is twice as large as the one before it, up to 512 MiB or what is asked for.

    The first buffer stays until the end, so that shaders are not prepared again for each small model.
    """

    _keeps_first = True

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._buffers: list[Buffer] = []
        self._holes: dict[int, list[tuple[int, int]]] = {}
        """By number of the buffer: (first word, words) that are free, in order."""
        self._staging: Buffer | None = None

    def take(self, num_words: int, *, alone: bool = False) -> Region:
        """Take words, of a buffer of their own if they are ``alone``; their contents are undefined.

        Raises:
            MemoryBudgetError: there is not enough memory.
        """
        needed = -(-max(num_words, 1) // ALIGNMENT) * ALIGNMENT
        for buffer in () if alone else self._buffers:
            for place, (at, free) in enumerate(self._holes[buffer.number]):
                if free >= needed:
                    self._holes[buffer.number][place : place + 1] = _rest(at, free, needed)
                    return self._region(buffer, at, needed)
        grown = 0 if alone else min(_FIRST_WORDS << len(self._buffers), _MOST_WORDS, self.runtime.most_words)
        buffer = self._allocate(max(needed, grown))
        self._buffers.append(buffer)
        self._holes[buffer.number] = _rest(0, buffer.num_words, needed)
        return self._region(buffer, 0, needed)

    def upload(self, region: Region, at: int, array: NDArray[np.generic]) -> None:
        """Copy a host array to words of a region, and wait; its last word is filled up with zeros."""
        words = as_words(array)
        staging = self._staged()
        for first in range(0, words.size, staging.num_words):
            part = words[first : first + staging.num_words]
            staging.view[: part.size] = part
            self.runtime.run([[copy(staging, 0, region.buffer, region.at + at + first, part.size)]])

    def download(self, region: Region, at: int, num_words: int) -> Words:
        """Wait, and return a copy of words of a region."""
        words = np.empty(num_words, np.uint32)
        staging = self._staged()
        for first in range(0, num_words, staging.num_words):
            count = min(staging.num_words, num_words - first)
            self.runtime.run([[copy(region.buffer, region.at + at + first, staging, 0, count)]])
            words[first : first + count] = staging.view[:count]
        return words

    def fill_zero(self, region: Region) -> None:
        """Set all words of a region to 0, and wait."""
        constants = (region.at, region.num_words, 0)
        groups = spread(region.num_words)
        self.runtime.run([[Dispatch(_FILL, (region.buffer,), constants, groups)]])

    def drop_staging(self) -> None:
        """Free the host memory of `upload` and `download`."""
        if self._staging is not None:
            self.runtime.free(self._staging)
        self._staging = None

    @property
    def num_bytes(self) -> int:
        """Bytes of all buffers."""
        return WORD * sum(buffer.num_words for buffer in self._buffers)

    @property
    def free_bytes(self) -> int:
        """Bytes of its buffers that nobody has taken."""
        return WORD * sum(free for holes in self._holes.values() for _, free in holes)

    def _allocate(self, num_words: int) -> Buffer:
        return self.runtime.allocate(num_words)

    def _staged(self) -> Buffer:
        if self._staging is None:
            self._staging = self.runtime.host(min(_STAGING_WORDS, self.runtime.most_words))
        return self._staging

    def _region(self, buffer: Buffer, at: int, num_words: int) -> Region:
        region = Region(buffer, at, num_words)
        weakref.finalize(region, self._give_back, buffer, at, num_words).atexit = False
        return region

    def _give_back(self, buffer: Buffer, at: int, num_words: int) -> None:
        holes = self._holes[buffer.number]
        holes.append((at, num_words))
        holes.sort()
        merged = [holes[0]]
        for first, count in holes[1:]:
            before, size = merged[-1]
            if before + size == first:
                merged[-1] = (before, size + count)
            else:
                merged.append((first, count))
        self._holes[buffer.number] = merged
        is_kept = self._keeps_first and buffer is self._buffers[0]
        if merged == [(0, buffer.num_words)] and not is_kept:
            self._buffers.remove(buffer)
            del self._holes[buffer.number]
            self.runtime.free(buffer)


class HostArena(Arena):
    """Buffers of the host's memory, which the device can read and copies are made from."""

    _keeps_first = False

    def upload(self, region: Region, at: int, array: NDArray[np.generic]) -> None:
        """Write a host array to words of a region."""
        words = as_words(array)
        first = region.at + at
        region.buffer.view[first : first + words.size] = words

    def _allocate(self, num_words: int) -> Buffer:
        return self.runtime.host(num_words)


def copy(source: Buffer, at: int, target: Buffer, target_at: int, num_words: int) -> Dispatch:
    """Return the dispatch that copies words from one buffer to another."""
    return Dispatch(_COPY, (source, target), (at, target_at, num_words), spread(num_words))


def copy_step(arrays: Buffer, target: Buffer, at: int, most_words: int) -> Dispatch:
    """Return the dispatch that copies the arrays of a step, as many words as they take."""
    return Dispatch(_COPY_STEP, (arrays, target), (at,), spread(most_words))


def spread(num_words: int) -> tuple[int, int, int]:
    """Return the work groups of a shader whose threads take words in turn."""
    return (max(1, min(_GROUPS, -(-num_words // _THREADS))), 1, 1)


def as_words(array: NDArray[np.generic]) -> Words:
    """Return the bytes of an array as words, the last one filled up with zeros."""
    octets = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if octets.size % WORD:
        octets = np.concatenate([octets, np.zeros(-octets.size % WORD, np.uint8)])
    return octets.view(np.uint32)


def _rest(at: int, free: int, needed: int) -> list[tuple[int, int]]:
    return [] if free == needed else [(at + needed, free - needed)]
