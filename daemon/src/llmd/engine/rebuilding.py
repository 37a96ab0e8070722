"""What a core needs to go on with another pipeline and another KV pool."""

from __future__ import annotations

from collections.abc import Iterable

from llmd.api.errors import MemoryBudgetError
from llmd.api.plan import KVGroup
from llmd.engine.admission import Admission
from llmd.engine.beams import Beams
from llmd.engine.limits import EngineLimits
from llmd.engine.placement.kv_budget import KVBudget
from llmd.pager.pager import Pager
from llmd.scheduler.sequence import Sequence


def new_pager(groups: tuple[KVGroup, ...], budget: KVBudget, limits: EngineLimits) -> Pager:
    return Pager(
        groups,
        budget.num_blocks,
        max_sequences=limits.slots + 1,  # one for `EngineCore.forward`
        max_len=limits.context_len,
        chunk_len=limits.max_planned,
        depth=limits.depth,
    )


def without_room(
    sequences: Iterable[Sequence], beams: Beams, admission: Admission
) -> dict[int, MemoryBudgetError]:
    """Return the requests of waiting sequences that do not fit the KV pool, even when it is empty."""
    failed = {}
    for sequence in sequences:
        try:
            admission.check_room(sequence, beams.width(sequence))
        except MemoryBudgetError as error:
            failed[beams.owner(sequence.request_id)] = error
    return failed
