"""A sequence or beam search for a supervisor to run."""

from __future__ import annotations

from msgspec import Struct

from llmd.api.messages import BeamParams, Grammar, SamplingParams, StopParams, Submit


class TokenRequest(Struct, frozen=True):
    """One sequence, or with ``beams`` one beam search. Fields as in `Submit`."""

    prompt: tuple[int, ...]
    sampling: SamplingParams
    stop: StopParams
    grammar: Grammar | None = None
    priority: int = 0
    cache_salt: str = ""
    prompt_logprobs: int | None = None
    beams: BeamParams | None = None

    @property
    def width(self) -> int:
        """Number of sequences that run at once."""
        return 1 if self.beams is None else self.beams.width

    def submit(self, request_id: int) -> Submit:
        """Return the message for an engine."""
        return Submit(
            request_id,
            self.prompt,
            self.sampling,
            self.stop,
            grammar=self.grammar,
            priority=self.priority,
            cache_salt=self.cache_salt,
            prompt_logprobs=self.prompt_logprobs,
            beams=self.beams,
        )
