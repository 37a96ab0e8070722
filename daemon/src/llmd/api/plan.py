"""A model as a program: what an `Architecture` makes of a configuration."""

from __future__ import annotations

from typing import Literal

import msgspec

from llmd.api.ops import EmbedTokenType, Op
from llmd.api.tensors import TensorRef

HIDDEN = "hidden"
"""The value that enters and leaves every part: the residual stream, float32 ``[rows, hidden_size]``.

Only what a ``score`` part leaves has another width: the number of its scores.
"""

PartKind = Literal["embed", "mixer", "ffn", "norm", "score", "head"]


class KVGroup(msgspec.Struct, frozen=True):
    """Layers whose keys and values have equal needs, and therefore share a pool and a block table.

    ``id`` is the group's index in `ModelPlan.groups`; ``window`` is in tokens, None for full attention;
    ``layers`` are layer numbers in ascending order.
    """

    id: int
    window: int | None
    kv_heads: int
    head_dim: int
    layers: tuple[int, ...]


class Part(msgspec.Struct, frozen=True):
    """The unit of placement: ops over named values, reading and writing `HIDDEN`.

    An ``embed`` part only writes it, a ``head`` part only reads it. A ``norm`` part (the final norm) or a ``score`` part
    (a classifier over each row) may stand last in a plan without a head. ``layer`` is None for these four.
    """

    name: str
    kind: PartKind
    layer: int | None
    ops: tuple[Op, ...]


class LeftOut(msgspec.Struct, frozen=True):
    """Tensors of a checkpoint that a plan does without on purpose, and what ``what`` says they are for.

    Those are meant whose names contain one of ``marks``. Other tensors beside those of the layers make a model be refused.
    """

    what: str
    marks: tuple[str, ...]


class ModelPlan(msgspec.Struct, frozen=True):
    """Everything that runs a model, without its weights.

    A plan that generates ends with a ``head`` part. One that embeds ends without: the last stage hands out `HIDDEN` of
    every row, as stages do that are not the last.

    ``context_len`` is the window in tokens that this plan is made for (length-dependent RoPE is resolved
    from it); ``max_context_len`` is the longest the checkpoint states. ``left_out`` are parts of the checkpoint that text
    does not need, of a model that also sees or hears.
    """

    architecture: str
    hidden_size: int
    vocab_size: int
    context_len: int
    max_context_len: int
    groups: tuple[KVGroup, ...]
    parts: tuple[Part, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def has_head(self) -> bool:
        """Whether it ends with the head, and so can generate."""
        return self.parts[-1].kind == "head"

    @property
    def num_layers(self) -> int:
        """Layers of the model."""
        return 1 + max(part.layer for part in self.parts if part.layer is not None)

    @property
    def num_token_types(self) -> int:
        """Token types that its embedding tells apart; 1 where it has no table of them."""
        ops = (op for part in self.parts for op in part.ops)
        return next((op.table.view_shape[0] for op in ops if isinstance(op, EmbedTokenType)), 1)

    def layer_parts(self, first: int, last: int) -> tuple[int, int]:
        """Part range ``[start, stop)`` of the layers ``[first, last)``, embedding and head not included."""
        inside = [i for i, p in enumerate(self.parts) if p.layer is not None and first <= p.layer < last]
        return inside[0], inside[-1] + 1

    def tensor_refs(self) -> tuple[TensorRef, ...]:
        """Every tensor that the parts use, each once, in order of first use."""
        refs = (t for part in self.parts for op in part.ops for t in op.tensors if t is not None)
        return tuple(dict.fromkeys(refs))
