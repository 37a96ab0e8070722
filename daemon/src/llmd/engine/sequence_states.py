"""The states of an engine's sequences, for a `Report`."""

from __future__ import annotations

from collections.abc import Iterator

from llmd.api.reports import SequenceState
from llmd.engine.beams import Beams
from llmd.engine.grammars.grammars import Grammars
from llmd.pager.pager import Pager
from llmd.scheduler.scheduler import Scheduler
from llmd.scheduler.sequence import Sequence
from llmd.scheduler.wait_reasons import wait_reasons


def sequence_states(
    scheduler: Scheduler, pager: Pager, grammars: Grammars, beams: Beams, slots: int
) -> Iterator[SequenceState]:
    """Yield the state of each sequence that has not ended; ``slots`` is how many may run at once."""
    for one in scheduler.running:
        yield running_state(one, pager)
    for one in scheduler.joining:
        yield SequenceState(one.owner_id, "waiting", "earlier")
    free_slots = slots - scheduler.slots_used()
    for one, reason in wait_reasons(
        scheduler.waiting, scheduler.running, scheduler.blocked_by, free_slots=free_slots
    ):
        yield SequenceState(one.owner_id, "waiting", reason)
    for one in grammars.waiting:
        yield SequenceState(beams.owner(one.request_id), "waiting", "grammar")


def running_state(sequence: Sequence, pager: Pager) -> SequenceState:
    """Return the state of a sequence that has blocks.

    In decode, only the keys and values of its last token are missing.
    """
    length, num_tokens = pager.length(sequence.request_id), len(sequence.tokens)
    decodes = num_tokens > sequence.prompt_len and length >= num_tokens - 1
    return SequenceState(
        sequence.owner_id,
        "decode" if decodes else "prefill",
        prompt_done=min(length, sequence.prompt_len),
        kv_blocks=pager.num_blocks(sequence.request_id),
    )
