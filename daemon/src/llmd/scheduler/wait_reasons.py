"""Why waiting sequences do not run yet. Pure: the state of a scheduler in, reasons out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as List

from llmd.api.reports import WaitReason
from llmd.scheduler.sequence import Sequence


def wait_reasons(
    waiting: Iterable[Sequence],
    running: List[Sequence],
    blocked_by: WaitReason | None,
    *,
    free_slots: int,
) -> Iterator[tuple[Sequence, WaitReason | None]]:
    """Yield each of the ``waiting`` sequences, which are in order of rank, with the reason why it waits.

    ``blocked_by`` is why the last plan did not start the first of them. A sequence without a reason has
    arrived since, or may start in the next step. If no slot is free, all wait for slots. Siblings of a
    sequence in prefill wait for it, and scored prompts for a scored prompt that runs.
    """
    in_prefill = {one.sibling_key for one in running} - {None}
    is_scoring = any(one.unscored_from for one in running)
    is_first = True
    for one in waiting:
        if one.sibling_key in in_prefill or (one.unscored_from and is_scoring):
            yield one, "earlier"
        elif not blocked_by:
            yield one, None
        elif free_slots <= 0:
            yield one, "slots"
        else:
            yield one, blocked_by if is_first else "earlier"
            is_first = False
