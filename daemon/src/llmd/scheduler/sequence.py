"""A request on its way: the tokens that it has, and what ends it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from llmd.api.messages import SamplingParams, StopParams, Submit
from llmd.pager.block_keys import BlockKeys, prompt_key
from llmd.pager.pool import Key
from llmd.scheduler.sequence_group import SequenceGroup


class Finish(StrEnum):
    """Why a sequence ended."""

    STOP = "stop"
    LENGTH = "length"


class Sequence(msgspec.Struct, eq=False):
    """Prompt and output of one request. Tokens are its whole state: everything else can be computed again."""

    request_id: int
    tokens: list[int]
    prompt_len: int
    sampling: SamplingParams
    stop: StopParams
    rank: tuple[int, int] = (0, 0)
    """Priority and arrival: the lower runs first and is preempted last."""
    cache_keys: BlockKeys | None = None
    """Names its blocks in the prefix cache; None: it does not take part."""
    sibling_key: Key | None = None
    """Equal for sequences that need the same prefill; None once it has output of its own."""
    pending: int = 0
    """Tokens that steps on their way will draw for it."""
    ended: bool = False
    prompt_logprobs: int | None = None
    """How many alternatives its prompt is scored with; None: it is not scored."""
    group: SequenceGroup | None = None
    """With whom it runs and gives way, where it is a beam: whoever searches appends its tokens, and no step draws any."""

    @classmethod
    def of(cls, submit: Submit, arrival: int = 0) -> Sequence:
        """Return a sequence that goes on after the output that the request already has."""
        scored = submit.prompt_logprobs is not None
        return cls(
            submit.request_id,
            [*submit.prompt, *submit.output],
            len(submit.prompt),
            submit.sampling,
            submit.stop,
            (submit.priority, arrival),
            None if scored else BlockKeys(submit.cache_salt),
            None if scored or submit.output else prompt_key(submit.prompt, submit.cache_salt),
            prompt_logprobs=None if submit.output else submit.prompt_logprobs,
        )

    @property
    def owner_id(self) -> int:
        """The request that it belongs to."""
        return self.request_id if self.group is None else self.group.request_id

    @property
    def expected_len(self) -> int:
        """Tokens that it has once the steps on their way are done."""
        return len(self.tokens) + self.pending

    @property
    def unscored_from(self) -> int:
        """The first row that is not scored: the last of a prompt that is scored, else the first of all."""
        return 0 if self.prompt_logprobs is None else self.prompt_len - 1

    @property
    def total_len(self) -> int:
        """Tokens that it has at the end; keys and values of all but the last are needed."""
        return self.prompt_len + self.stop.max_tokens

    def fork(self, request_id: int) -> Sequence:
        """Another sequence with the same tokens so far."""
        keys = None if self.cache_keys is None else self.cache_keys.fork(len(self.tokens))
        return msgspec.structs.replace(
            self, request_id=request_id, tokens=self.tokens.copy(), cache_keys=keys
        )

    def append(self, token: int) -> Finish | None:
        """Add a token that a step drew; return why the sequence ends with it, if it does."""
        self.tokens.append(token)
        self.pending -= 1
        self.sibling_key = None
        self.prompt_logprobs = None
        num_output = len(self.tokens) - self.prompt_len
        if token in self.stop.stop_ids and num_output > self.stop.min_tokens:
            return Finish.STOP
        return Finish.LENGTH if num_output >= self.stop.max_tokens else None
