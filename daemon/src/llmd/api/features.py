"""Names of the optional features of the contract.

A device states the features that it supports (`DeviceInfo.features`), a program those that it needs
(`Program.needs`, from `ModelPlan.needs` and from what the program itself contains). `checks.refusals` refuses
a program that needs a feature that the device does not state, also one with a name that this llmd does not
know.

A later field of `Step`, `Selection` or `Program` that changes results belongs to a new feature: a device
that does not read the field does not state the feature, so no such program reaches it. Such a field has a
default and does not raise `API_VERSION`.
"""

from __future__ import annotations

DRAWS = "draws"
"""The device draws tokens (`Selection.draws`) and takes edits while the layers run (`Stage.apply_edits`)."""

STATE = "state"
"""KV groups of kind ``state``: a fixed number of bytes for each sequence."""

LATENT = "latent"
"""KV groups of kind ``latent``: one compressed vector for each token in place of keys and values."""

SINKS = "sinks"
"""Attention can have sinks (`Attention.sinks`)."""

OWN_WEIGHTS = "own_weights"
"""Each slice of a norm can have weights of its own (`Norm.own_weights`)."""

SHARED_KEYS = "shared_keys"
"""Attention can read the keys and values of another layer (`Attention.k` is None)."""

CHOSEN_POSITIONS = "chosen_positions"
"""Attention can be limited to chosen positions (`Attention.chosen`)."""

STRIDES = "strides"
"""A vector of a ``latent`` group can stand for several tokens (`KVGroup.stride`, `Rope.stride`)."""

ATTENTION_SUMS = "attention_sums"
"""Attention can write the sums of its softmax (`Attention.sums`), also over a ``latent`` group with a
window."""

GIVEN_EXPERTS = "given_experts"
"""A router can be given its experts, and score them by the root of a softplus (`Router.given`)."""

LIMITS = "limits"
"""A gated linear unit can have a limit (`Glu.limit`)."""

COLUMNS = "columns"
"""An embedding can look up some columns of its table (`Embed.columns`)."""

TAPS = "taps"
"""Hidden states inside the program can be read (`Program.taps`)."""

STREAMS = "streams"
"""Weights of some parts stay in main memory, and each step copies them to the device (`Program.streamed`)."""

SPANS = "spans"
"""The device says when it worked on a step (`StageLimits.spans`, `Stage.spans`). No program needs it."""

KERNELS = "kernels"
"""The device says which kernels a stage uses (`llmd.api.kernel_use.NamesKernels`). No program needs it."""

EXPERT_CACHE = "expert_cache"
"""The device can keep only some experts in memory (`Program.expert_bytes`). No program needs it."""

ADAPTERS = "adapters"
"""Each sequence of a step can use an adapter of its own (`llmd.api.adapter_ops.Adapt`, `Step.adapters`)."""

COMPUTED: tuple[str, ...] = (
    ADAPTERS,
    ATTENTION_SUMS,
    CHOSEN_POSITIONS,
    COLUMNS,
    DRAWS,
    GIVEN_EXPERTS,
    LATENT,
    LIMITS,
    OWN_WEIGHTS,
    SHARED_KEYS,
    SINKS,
    SPANS,
    STATE,
    STREAMS,
    STRIDES,
    TAPS,
)
"""What a device can be asked for on any machine: the reference has all of these, and the conformance suite
names those that a device lacks."""
