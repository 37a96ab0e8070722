"""When the next step is launched, in relation to the tokens that the step in flight has yet to give it."""

from __future__ import annotations

from enum import Enum, auto


class Overlap(Enum):
    """The cases, the earliest launch first."""

    BEHIND = auto()
    """At once, behind the steps in flight: the device takes the tokens that the step lacks from them."""
    AFTER_DRAW = auto()
    """Once the host has drawn the tokens."""
    AFTER_APPEND = auto()
    """Once the tokens are appended to their sequences, because edits or masks depend on them."""
    NONE = auto()
    """Not at all: nothing can be planned before the step in flight has ended."""


def choose_overlap(
    *,
    is_empty: bool,
    lacks_tokens: bool,
    device_feeds_itself: bool,
    follows_device: bool,
    needs_appended: bool,
) -> Overlap:
    """Return the earliest time at which a step can be launched.

    Args:
        is_empty: the step has no rows.
        lacks_tokens: rows of the step need tokens that the step in flight has yet to draw.
        device_feeds_itself: the stage that embeds tokens is the one that chooses them.
        follows_device: the device can choose every token that the step lacks, and only masks depend on them.
        needs_appended: edits or masks of the step depend on tokens that it lacks.
    """
    if is_empty:
        return Overlap.NONE
    if not lacks_tokens or (device_feeds_itself and follows_device):
        return Overlap.BEHIND
    return Overlap.AFTER_APPEND if needs_appended else Overlap.AFTER_DRAW
