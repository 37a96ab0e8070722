"""What an engine reports when the front asks: counters, the state of its sequences, and its KV pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from llmd.api.expert_cache import ExpertCacheUse
from llmd.api.kernel_use import KernelUse

WaitReason = Literal["slots", "kv_blocks", "grammar", "earlier"]
"""Why a sequence does not run yet: all slots are taken, too few KV blocks are free, its grammar is being
compiled, or an earlier sequence comes first."""

BlockState = Literal["free", "cached", "used", "shared"]
"""Who refers to a KV block: nobody, only the prefix cache, one sequence, or several."""


class GetReport(msgspec.Struct, frozen=True, tag=True):
    """Ask for a `Report`; an answer proves that the engine's loop is running.

    It makes progress if ``steps`` grows, or if nothing runs and nothing waits.
    """

    sequences: bool = False
    """Whether the report has the state of each sequence."""


class GetBlocks(msgspec.Struct, frozen=True, tag=True):
    """Ask for the state of all `Blocks`."""


class SequenceState(msgspec.Struct, frozen=True, array_like=True):
    """A sequence of a request that has not ended. A request with beams may have several."""

    request_id: int
    state: Literal["waiting", "prefill", "decode"]
    """``prefill`` includes computing the tokens of a preempted sequence again."""
    waiting_for: WaitReason | None = None
    """Why it waits; None: it runs, or the next step may start it."""
    prompt_done: int = 0
    """Prompt tokens with valid keys and values."""
    kv_blocks: int = 0
    """Blocks that it refers to, including those that it shares."""


class Report(msgspec.Struct, frozen=True, tag=True):
    """Counters of an engine since it was loaded, and its present state."""

    steps: int
    running: int
    """Sequences running now."""
    waiting: int
    """Sequences in the queue now."""
    prompt_tokens: int
    """Prompt tokens that were computed."""
    cached_tokens: int
    """Prompt tokens that were found in the prefix cache instead."""
    output_tokens: int
    preemptions: int
    """How often sequences lost their blocks to others."""
    prefill_s: float
    """Seconds in steps with prefill."""
    decode_s: float
    """Seconds in steps without prefill."""
    kv_blocks_used: int
    """Blocks that running sequences refer to."""
    kv_blocks_total: int
    state_bytes_used: int = 0
    """Bytes of the slots with states that running sequences refer to."""
    state_bytes_total: int = 0
    """Bytes of all slots: states of running sequences, and snapshots of prefixes."""
    decode_steps: int = 0
    """Steps without prefill."""
    decode_rows: int = 0
    """Rows of these steps."""
    decode_kv_bytes: int = 0
    """Bytes of keys and values that these steps have read."""
    single_steps: int = 0
    """Those of them with a single row."""
    single_s: float = 0.0
    """Seconds in steps with a single row."""
    timed_steps: int = 0
    """Steps with a single row whose stages were timed, since the model was placed."""
    stages_s: tuple[float, ...] = ()
    """Seconds that each stage worked on them. Empty: there was none, the model is on one device, or a device
    does not say when it works on a step."""
    kernels: tuple[KernelUse, ...] = ()
    """The kernels of each stage; empty ones if its device does not say."""
    expert_cache: ExpertCacheUse | None = None
    """What was read of experts; None: all of them are in memory."""
    step_s: float | None = None
    """Seconds that the largest possible step computes at most, in proportion to the longest step so far:
    processor time, but not more than the clock shows. None: no step has ended yet."""
    spilled_bytes: Mapping[str, int] = {}
    """By `DeviceInfo.memory_id`: what drivers keep in main memory instead, because that memory is full."""
    sequences: tuple[SequenceState, ...] | None = None
    """The state of each sequence, if `GetReport.sequences` asks for it."""


class GroupBlocks(msgspec.Struct, frozen=True, array_like=True):
    """The blocks of one KV group."""

    group: int
    """`KVGroup.id`."""
    block_len: int | None
    """Tokens of a block; None: a slot for the state of one sequence, whatever its length."""
    map: tuple[tuple[BlockState, int], ...]
    """The states in the order of the pool; each with the number of consecutive blocks that have it."""


class Blocks(msgspec.Struct, frozen=True, tag=True):
    """The KV pools, by group; empty if the model keeps no KV cache."""

    groups: tuple[GroupBlocks, ...]
