"""What an engine sends of the requests that it runs: tokens, vectors and failures (`llmd.api.messages`)."""

from __future__ import annotations

import msgspec


class Logprobs(msgspec.Struct, frozen=True, array_like=True):
    """Natural logs of the probabilities of a drawn token and its alternatives."""

    chosen: float
    """Logprob of the token itself."""
    top_ids: tuple[int, ...]
    """The alternatives."""
    top: tuple[float, ...]
    """Logprobs of ``top_ids``."""


class TokenOutput(msgspec.Struct, frozen=True, array_like=True):
    """A token of one request."""

    request_id: int
    token: int
    finish: str | None = None
    """``stop`` (``token`` is the stop id) or ``length``."""
    logprobs: Logprobs | None = None
    state: bytes = b""
    """Sampler state that tokens do not determine (mirostat), at most 64 bytes; resubmit it as
    `Submit.state`."""
    prompt: tuple[Logprobs, ...] = ()
    """With the first token: logprobs of all prompt tokens but the first, if the request asks for them."""


class Hypothesis(msgspec.Struct, frozen=True, array_like=True):
    """An answer that a beam search found."""

    tokens: tuple[int, ...]
    finish: str
    """``stop`` (the last token is the stop id) or ``length``."""
    score: float
    """The score that `BeamParams` defines."""
    logprobs: tuple[Logprobs, ...] = ()
    """One entry per token, if the request asks for them."""


class BeamOutput(msgspec.Struct, frozen=True, array_like=True):
    """The answers of a request with beams, which end it: at least one, perhaps fewer than it asked for."""

    request_id: int
    hypotheses: tuple[Hypothesis, ...]


class Started(msgspec.Struct, frozen=True, array_like=True):
    """A request that began to run, for the first time or after a preemption."""

    request_id: int
    cached_tokens: int
    """Tokens found in the prefix cache."""
    running_s: float = 0.0
    """Seconds from scheduling its first prefill chunk to this message, sent with the results of that step."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """A request failed, or the load did (``request_id`` is None)."""

    request_id: int | None
    error: str
    """Name of a class in `llmd.api.errors`."""
    message: str
    hint: str = ""


class Output(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """The results of one step."""

    tokens: tuple[TokenOutput, ...]
    started: tuple[Started, ...] = ()
    """Requests whose prefill began in this step."""
    failed: tuple[Failed, ...] = ()
    """Requests that cannot continue."""
    beams: tuple[BeamOutput, ...] = ()
    """Beam searches that ended."""
    step_s: float | None = None
    """As in `Report`, if it has changed."""


class TextVector(msgspec.Struct, frozen=True, array_like=True):
    """The pooled rows of a text: little-endian float32, neither normalised nor truncated."""

    request_id: int
    vector: bytes


class Embedded(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Vectors of the texts that a step finished, and the texts that it began."""

    vectors: tuple[TextVector, ...]
    started: tuple[Started, ...] = ()
    step_s: float | None = None
    """As in `Output`."""
