"""A model as a program of ops, which an `Architecture` makes from a configuration."""

from __future__ import annotations

from typing import Literal

import msgspec

from llmd.api.ops import EmbedTokenType, Op
from llmd.api.step import BLOCK_LEN
from llmd.api.tensors import TensorRef

HIDDEN = "hidden"
"""Name of the value that enters and leaves each part: the residual stream, float32 ``[rows, hidden_size]``.

After a ``score`` part its width is the number of scores instead.
"""

PartKind = Literal["embed", "mixer", "ffn", "norm", "score", "head"]
"""What a part does; a ``mixer`` mixes tokens, as attention does."""


KVKind = Literal["paged", "latent", "state"]
"""What the layers of a group keep of a sequence. ``paged``: a key and a value for each token and head, in
blocks. ``latent``: one vector for each token and head, in blocks; it is the key, and its first ``value_dim``
elements are the value. Index keys (`llmd.api.latent_ops.Indexer`) are such vectors without a value.
``state``: a state of fixed size, which each token changes, in a slot."""


class KVGroup(msgspec.Struct, frozen=True):
    """Layers that keep the same of a sequence, for the same window; they share a pool and a block table.

    The blocks of a ``state`` group are slots: one has the states that a sequence has in all layers at one
    length. It has no heads and no window.
    """

    id: int
    """Index in `ModelPlan.groups`."""
    window: int | None
    """Attention window in tokens; None: full attention."""
    kv_heads: int
    """Number of key-value heads; 0 for a ``state`` group."""
    head_dim: int
    """Elements of a key; 0 for a ``state`` group."""
    layers: tuple[int, ...]
    """Layer numbers, ascending."""
    kind: KVKind = "paged"
    """What the layers keep."""
    value_dim: int = 0
    """Elements of a value; if 0 is given, as many as in a key."""
    state_bytes: int = 0
    """For a ``state`` group: bytes of the state of one sequence in one layer."""
    stride: int = 1
    """For a ``latent`` group: tokens for each vector. Vector ``e`` stands for the tokens
    ``stride * e .. stride * (e + 1) - 1``; the last of them writes it, and reads it first. A divisor or a
    multiple of `BLOCK_LEN`."""

    def __post_init__(self) -> None:
        if not self.value_dim:
            msgspec.structs.force_setattr(self, "value_dim", self.head_dim)
        if BLOCK_LEN % self.stride and self.stride % BLOCK_LEN:
            raise ValueError(f"stride {self.stride} neither divides {BLOCK_LEN} nor is a multiple of it")

    @property
    def key_dim(self) -> int:
        """Elements of a key."""
        return self.head_dim

    @property
    def block_tokens(self) -> int:
        """Tokens whose keys and values are in one block."""
        return max(BLOCK_LEN, self.stride)

    @property
    def block_vectors(self) -> int:
        """Vectors in a block of one layer and head, of keys or of values."""
        return self.block_tokens // self.stride


class Part(msgspec.Struct, frozen=True):
    """The unit of placement: ops over named values that read and write `HIDDEN`.

    An ``embed`` part only writes it, a ``head`` part only reads it. In a plan without a head, the last part
    may be ``norm`` (the final norm) or ``score`` (a classifier of each row).
    """

    name: str
    """For people, such as ``layer 3 ffn``."""
    kind: PartKind
    layer: int | None
    """Layer number; None for ``embed``, ``norm``, ``score`` and ``head``."""
    ops: tuple[Op, ...]
    """Run in order."""


ONLY_TEXT = "llmd runs only the text model"


class LeftOut(msgspec.Struct, frozen=True):
    """Tensors of a checkpoint that a plan ignores on purpose.

    Any other unused tensor of a layer makes a model unsupported; unused tensors outside the layers give a
    notice.
    """

    what: str
    """What the tensors are for."""
    marks: tuple[str, ...]
    """A tensor is left out if its name contains one of these."""
    is_draft: bool = False
    """Whether they belong to the text model: a head that predicts further tokens."""
    why: str = ONLY_TEXT
    """Why they are not needed, if they are no draft head."""

    @property
    def is_other_media(self) -> bool:
        """Whether they belong to a part for images or audio."""
        return not self.is_draft and self.why == ONLY_TEXT


class ModelPlan(msgspec.Struct, frozen=True):
    """Everything that is needed to run a model, except its weights.

    A plan that generates ends with a ``head`` part. One that embeds has no head: its last stage returns the
    `HIDDEN` value of all rows, as earlier stages do.
    """

    architecture: str
    """Name of the family, such as ``llama``."""
    hidden_size: int
    """Elements of a row of `HIDDEN`."""
    vocab_size: int
    """Number of token ids."""
    context_len: int
    """Context window in tokens that the plan is made for; length-dependent RoPE is resolved for it."""
    max_context_len: int
    """The longest context that the checkpoint states."""
    groups: tuple[KVGroup, ...]
    """KV groups; empty: the model keeps no KV cache."""
    parts: tuple[Part, ...]
    """Run in order."""
    left_out: tuple[LeftOut, ...] = ()
    """Tensors that text does not need, such as the vision or audio encoder of a multimodal model."""
    carried: tuple[str, ...] = ()
    """Names of values that the parts after the one that writes them may read as well. Those that read them
    are on the device of that part."""
    needs: tuple[str, ...] = ()
    """Features that every device of the model must support (`llmd.api.features`)."""

    @property
    def has_head(self) -> bool:
        """Whether the plan ends with a head, and so can generate."""
        return self.parts[-1].kind == "head"

    @property
    def num_layers(self) -> int:
        """Number of layers."""
        return 1 + max(part.layer for part in self.parts if part.layer is not None)

    @property
    def num_token_types(self) -> int:
        """Number of token types that the embedding distinguishes; 1 if it has no table for them."""
        ops = (op for part in self.parts for op in part.ops)
        return next((op.table.view_shape[0] for op in ops if isinstance(op, EmbedTokenType)), 1)

    def layer_parts(self, first: int, last: int) -> tuple[int, int]:
        """Return the part range ``[start, stop)`` of layers ``[first, last)``, without embedding and head."""
        inside = [i for i, p in enumerate(self.parts) if p.layer is not None and first <= p.layer < last]
        return inside[0], inside[-1] + 1

    def tensor_refs(self) -> tuple[TensorRef, ...]:
        """Return the tensors that the parts use, each once, in order of first use."""
        refs = (t for part in self.parts for op in part.ops for t in op.tensors if t is not None)
        return tuple(dict.fromkeys(refs))
