"""How far a request has come, and what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, structs

from llmd.api.reports import SequenceState

State = Literal["queued", "waiting", "prefill", "decode", "ended"]
"""``queued``: the engine does not have it yet; ``waiting``: it is in the engine's queue."""

WaitingFor = Literal["model", "memory", "slots", "kv_blocks", "grammar", "earlier", "client"]
"""As `llmd.api.reports.WaitReason`, or: its model is being loaded; its model waits for the memory of other
models; its client reads too slowly."""

ORDER: Sequence[State] = ("waiting", "prefill", "decode")


class RequestProgress(Struct, frozen=True):
    """The progress of all sequences of a request together: that of the one that has come furthest."""

    state: State = "queued"
    waiting_for: WaitingFor | None = None
    prompt_done: int = 0
    """Tokens of the prompt that were computed, or found in the prefix cache."""
    kv_blocks: int = 0
    """Blocks that its sequences refer to; one that several of them share counts for each."""

    def reached(self, state: State, prompt_done: int = 0) -> RequestProgress:
        """Return the progress once the request has reached a state, with at least this much of its prompt."""
        return structs.replace(
            self, state=state, waiting_for=None, prompt_done=max(self.prompt_done, prompt_done)
        )

    def ended(self) -> RequestProgress:
        return structs.replace(self, state="ended", waiting_for=None, kv_blocks=0)


def combined(states: Sequence[SequenceState], prompt_done: int) -> RequestProgress:
    """Return the progress of a request from the states of its sequences, of which there is at least one."""
    furthest = max(states, key=lambda one: ORDER.index(one.state))
    return RequestProgress(
        furthest.state, furthest.waiting_for, prompt_done, sum(one.kv_blocks for one in states)
    )


def why_queued(status: str, waits_for: Sequence[str]) -> WaitingFor | None:
    """Return what a request waits for that the engine does not have yet.

    ``status`` is its model's; ``waits_for`` are the models whose memory its model waits for. None: its prompt
    is being prepared.
    """
    if waits_for:
        return "memory"
    return "model" if status == "loading" else None
