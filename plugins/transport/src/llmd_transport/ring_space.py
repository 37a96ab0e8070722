"""Where the frames of one direction lie in its shared memory."""

from __future__ import annotations

from collections import deque

ALIGNMENT = 64
"""Frames begin at multiples of this many bytes, a cache line."""


class RingSpace:
    """Places frames in a buffer of a multiple of `ALIGNMENT` bytes.

    Each is contiguous, and they are freed in the order in which they were added.

    Frames lie as near to the beginning as they can, so that a large buffer whose frames are freed soon uses
    only its first bytes; the system gives memory to no others.
    """

    def __init__(self, num_bytes: int) -> None:
        self._num_bytes = num_bytes
        self._frames: deque[tuple[int, int]] = deque()

    def __len__(self) -> int:
        return len(self._frames)

    def place(self, num_bytes: int) -> int | None:
        """Return where a frame of that size can begin; None if it must wait for others to be freed.

        A frame of at most the whole buffer always has a place once all others are freed.
        """
        if not self._frames:
            return 0
        oldest, newest_end = self._frames[0][0], self._frames[-1][1]
        begins_again = self._frames[-1][0] < oldest
        taken = _taken(num_bytes)
        if not begins_again and taken <= oldest:
            return 0
        limit = oldest if begins_again else self._num_bytes
        return newest_end if newest_end + taken <= limit else None

    def add(self, begin: int, num_bytes: int) -> None:
        """Take the place of a frame, which `place` returned."""
        self._frames.append((begin, begin + _taken(num_bytes)))

    def free_oldest(self) -> None:
        """Free the place of the oldest frame."""
        self._frames.popleft()


def _taken(num_bytes: int) -> int:
    """Return the bytes that a frame takes. An empty one takes some, too, so that no two begin alike."""
    return max(1, -(-num_bytes // ALIGNMENT)) * ALIGNMENT
