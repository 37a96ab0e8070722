"""A sequence: the tokens of a request, and the conditions that end it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from llmd.api.messages import StopParams, Submit
from llmd.api.samplers import SamplingParams
from llmd.pager.block_keys import BlockKeys, prompt_key
from llmd.pager.pool import Key
from llmd.scheduler.sequence_group import SequenceGroup


class Finish(StrEnum):
    """Why a sequence ended."""

    STOP = "stop"
    LENGTH = "length"


class Sequence(msgspec.Struct, eq=False):
    """Prompt and output of one request. The tokens are its whole state: everything else can be recomputed."""

    request_id: int
    tokens: list[int]
    prompt_len: int
    sampling: SamplingParams
    stop: StopParams
    rank: tuple[int, int] = (0, 0)
    """Priority and arrival: lower ranks run first and are preempted last."""
    cache_keys: BlockKeys | None = None
    """Keys of its blocks in the prefix cache; None: it does not use the prefix cache."""
    sibling_key: Key | None = None
    """Equal for sequences that need the same prefill; None once the sequence has output."""
    opening: int = -1
    """`Pager.opening`, while it runs."""
    pending: int = 0
    """Tokens that steps in flight will draw for it."""
    ended: bool = False
    prompt_logprobs: int | None = None
    """Number of alternatives for each scored prompt token; None: the prompt is not scored."""
    group: SequenceGroup | None = None
    """Group of a beam. The beam search appends the tokens; steps draw none."""
    adapter: str = ""
    """Name of its adapter; empty: none."""

    @classmethod
    def of(cls, submit: Submit, arrival: int = 0) -> Sequence:
        """Return a sequence that continues after the output that the request already has."""
        scored = submit.prompt_logprobs is not None
        return cls(
            submit.request_id,
            [*submit.prompt, *submit.output],
            len(submit.prompt),
            submit.sampling,
            submit.stop,
            (submit.priority, arrival),
            None if scored else BlockKeys(submit.cache_salt, submit.adapter),
            None if scored or submit.output else prompt_key(submit.prompt, submit.cache_salt, submit.adapter),
            prompt_logprobs=None if submit.output else submit.prompt_logprobs,
            adapter=submit.adapter,
        )

    @property
    def owner_id(self) -> int:
        """Id of the request that the sequence belongs to."""
        return self.request_id if self.group is None else self.group.request_id

    @property
    def expected_len(self) -> int:
        """Number of tokens once the steps in flight are done."""
        return len(self.tokens) + self.pending

    @property
    def unscored_from(self) -> int:
        """First row that is not scored: the last row of a scored prompt, else 0."""
        return 0 if self.prompt_logprobs is None else self.prompt_len - 1

    @property
    def total_len(self) -> int:
        """Number of tokens at the end, at most; the KV cache needs all but the last."""
        return self.prompt_len + self.stop.max_tokens

    @property
    def speculates(self) -> bool:
        """Whether a step may draw several of its tokens: no draw changes how the next one is drawn."""
        return self.group is None and self.sampling.mirostat is None

    def fork(self, request_id: int) -> Sequence:
        """Return another sequence with the same tokens so far."""
        keys = None if self.cache_keys is None else self.cache_keys.fork(len(self.tokens))
        return msgspec.structs.replace(
            self, request_id=request_id, tokens=self.tokens.copy(), cache_keys=keys
        )

    def append(self, token: int) -> Finish | None:
        """Append a token that a step drew; return why the sequence ends with it, or None if it continues."""
        self.tokens.append(token)
        self.pending = max(0, self.pending - 1)  # proposals that were drawn are not pending
        self.sibling_key = None
        self.prompt_logprobs = None
        num_output = len(self.tokens) - self.prompt_len
        if token in self.stop.stop_ids and num_output > self.stop.min_tokens:
            return Finish.STOP
        return Finish.LENGTH if num_output >= self.stop.max_tokens else None
