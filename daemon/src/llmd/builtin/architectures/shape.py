"""The sizes that every model has."""

from __future__ import annotations

import msgspec

from llmd.builtin.architectures.config_fields import ConfigFields

MAX_LAYERS = 4096
MAX_HEAD_DIM = 4096


class Shape(msgspec.Struct, frozen=True):
    """Sizes of a model. Widths are in elements."""

    hidden_size: int
    intermediate_size: int
    vocab_size: int
    num_layers: int
    heads: int
    """Query heads."""
    kv_heads: int
    """Key and value heads; each serves ``heads / kv_heads`` query heads."""
    head_dim: int

    @property
    def q_width(self) -> int:
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        return self.kv_heads * self.head_dim


def read_shape(fields: ConfigFields, *, default_head_dim: int | None = None) -> Shape:
    """Read the sizes. If ``head_dim`` is missing, it is ``default_head_dim``, or else hidden size over heads.

    Raises:
        CheckpointError: a size is missing or invalid, or contradicts another.
    """
    hidden = fields.size("hidden_size")
    heads = fields.size("num_attention_heads")
    kv_heads = fields.size("num_key_value_heads", heads)
    if heads % kv_heads:
        fields.contradict(f"num_key_value_heads {kv_heads} does not divide num_attention_heads {heads}")
    if default_head_dim is None and "head_dim" not in fields and hidden % heads:
        fields.contradict(
            f"hidden_size {hidden} is not a multiple of num_attention_heads {heads}, and head_dim is missing"
        )
    return Shape(
        hidden_size=hidden,
        intermediate_size=fields.size("intermediate_size"),
        vocab_size=fields.size("vocab_size"),
        num_layers=fields.size("num_hidden_layers", at_most=MAX_LAYERS),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=fields.size("head_dim", default_head_dim or max(1, hidden // heads), at_most=MAX_HEAD_DIM),
    )
