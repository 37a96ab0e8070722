"""Read RoPE from the old or new fields of ``config.json``, and make a table for a context window.

Old: ``rope_theta``, ``rope_scaling`` (with ``type`` or ``rope_type``), ``partial_rotary_factor``. New: all of
them in ``rope_parameters``, or in one such object for each kind of layer. If there is also a
``rope_scaling``, which users add to extend the context, it takes precedence; what it lacks is taken from the
other places.
"""

from __future__ import annotations

import msgspec

from llmd.api import RopeTable
from llmd.builtin.architectures import rope_scaling
from llmd.builtin.architectures.config_fields import ConfigFields

DEFAULT_THETA = 10000.0
TYPES = {
    name: name for name in ("default", "linear", "dynamic", "llama3", "yarn", "longrope", "proportional")
} | {"su": "longrope"}
STRETCHED = ("dynamic", "yarn")
"""Types whose ``factor`` extends the context beyond ``max_position_embeddings``."""


class RopeConfig(msgspec.Struct, frozen=True):
    """The RoPE of one kind of layer."""

    scaling: ConfigFields
    """The object with the scaling fields."""
    type: str
    theta: float
    partial_factor: float
    max_len: int
    """``max_position_embeddings``."""
    trained_len: int
    """``original_max_position_embeddings``."""

    @property
    def max_context_len(self) -> int:
        """The longest context in tokens for which the scaling is meant."""
        if self.type in STRETCHED:
            return max(self.max_len, int(self.trained_len * self.scaling.positive("factor")))
        return self.max_len


def read_rope(
    fields: ConfigFields, new: ConfigFields | None = None, *, default_theta: float = DEFAULT_THETA
) -> RopeConfig:
    """Read the RoPE of a model with one for all layers; ``new`` is its object in the new spelling.

    Raises:
        CheckpointError: a field is missing or has the wrong type.
        UnsupportedModelError: the scaling type is unknown.
    """
    new = fields.inside("rope_parameters") if new is None else new
    scaling = fields.inside("rope_scaling") if "rope_scaling" in fields else new
    theta = _stating("rope_theta", scaling, new, fields).positive("rope_theta", default_theta)
    return rope_config(fields, scaling, theta)


def rope_config(fields: ConfigFields, scaling: ConfigFields, theta: float) -> RopeConfig:
    """Read the RoPE described by the object ``scaling``. Raises the same errors as `read_rope`."""
    max_len = fields.size("max_position_embeddings")
    places = (scaling, fields.inside("rope_parameters"), fields)
    partial = _stating("partial_rotary_factor", *places)
    trained = _stating("original_max_position_embeddings", *places)
    if theta <= 1:
        fields.contradict(f"rope_theta is {theta}, expected a number above 1")
    return RopeConfig(
        scaling=scaling,
        type=scaling.choice("rope_type" if "rope_type" in scaling else "type", TYPES, "default"),
        theta=theta,
        partial_factor=partial.positive("partial_rotary_factor", 1.0),
        max_len=max_len,
        trained_len=trained.size("original_max_position_embeddings", max_len),
    )


def _stating(name: str, *places: ConfigFields) -> ConfigFields:
    """Return the first object that has the field, else the last one."""
    return next((place for place in places if name in place), places[-1])


def rope_table(rope: RopeConfig, head_dim: int, context_len: int) -> RopeTable:
    """Return the table for heads of ``head_dim`` in a context window of ``context_len`` tokens.

    Raises:
        CheckpointError: the rotated part of a head is not an even number of elements, or a field is missing
            or has the wrong type.
    """
    dim = head_dim if rope.type == "proportional" else int(head_dim * rope.partial_factor)
    if dim % 2 or not 2 <= dim <= head_dim:
        rope.scaling.contradict(
            f"head_dim {head_dim} and partial_rotary_factor {rope.partial_factor} rotate {dim} elements of each head,"
            f" expected an even number in 2..{head_dim}"
        )
    plain = rope_scaling.frequencies(rope.theta, dim)
    match rope.type:
        case "linear":
            return _table(rope_scaling.linear(plain, rope.scaling.positive("factor")))
        case "dynamic":
            return _dynamic(rope, dim, context_len)
        case "llama3":
            return _llama3(rope, plain)
        case "yarn":
            return _yarn(rope, dim)
        case "longrope":
            return _longrope(rope, plain, context_len)
        case "proportional":
            factor = rope.scaling.positive("factor", 1.0)
            plain = rope_scaling.proportional(rope.theta, dim, rope.partial_factor, factor)
    return _table(plain)


def _table(freqs: list[float], factor: float = 1.0) -> RopeTable:
    return RopeTable(tuple(freqs), factor)


def _dynamic(rope: RopeConfig, dim: int, context_len: int) -> RopeTable:
    if dim < 4:
        rope.scaling.contradict(f"dynamic RoPE needs heads of at least 4 rotated elements, these have {dim}")
    factor = rope.scaling.positive("factor")
    theta = rope_scaling.dynamic_theta(rope.theta, dim, factor, context_len, rope.max_len)
    return _table(rope_scaling.frequencies(theta, dim))


def _llama3(rope: RopeConfig, plain: list[float]) -> RopeTable:
    low, high = rope.scaling.positive("low_freq_factor"), rope.scaling.positive("high_freq_factor")
    if low >= high:
        rope.scaling.contradict(f"low_freq_factor {low} is not below high_freq_factor {high}")
    factor = rope.scaling.positive("factor")
    return _table(rope_scaling.llama3(plain, factor, low, high, rope.trained_len))


def _yarn(rope: RopeConfig, dim: int) -> RopeTable:
    scaling = rope.scaling
    factor = scaling.positive("factor")
    freqs = rope_scaling.yarn(
        rope.theta,
        dim,
        factor,
        scaling.positive("beta_fast", 32.0),
        scaling.positive("beta_slow", 1.0),
        rope.trained_len,
        truncate=scaling.flag("truncate", default=True),
    )
    by_factor = rope_scaling.yarn_attention_factor(factor)
    if "mscale" in scaling and "mscale_all_dim" in scaling:
        above = rope_scaling.yarn_attention_factor(factor, scaling.positive("mscale"))
        by_factor = above / rope_scaling.yarn_attention_factor(factor, scaling.positive("mscale_all_dim"))
    return _table(freqs, scaling.positive("attention_factor", by_factor))


def _longrope(rope: RopeConfig, plain: list[float], context_len: int) -> RopeTable:
    scaling = rope.scaling
    if rope.trained_len == 1:
        scaling.contradict("original_max_position_embeddings is 1, longrope needs at least 2")
    factor = (
        rope.max_len / rope.trained_len
        if rope.max_len != rope.trained_len
        else scaling.positive("factor", 1.0)
    )
    short, long = (scaling.positives(f"{length}_factor", len(plain)) for length in ("short", "long"))
    by_factor = rope_scaling.longrope_attention_factor(factor, rope.trained_len)
    divisors = long if context_len > rope.trained_len else short
    return _table(rope_scaling.longrope(plain, divisors), scaling.positive("attention_factor", by_factor))
