"""The op that applies adapters: small corrections of products, chosen for each sequence of a step.

Source: Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models"; several adapters in one step as
in Chen et al. 2023, "Punica: Multi-Tenant LoRA Serving".
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from llmd.api.base_op import BaseOp
from llmd.api.tensors import TensorRef


class LowRank(msgspec.Struct, frozen=True):
    """What an adapter adds to a product ``x @ W.T``: ``(x @ a.T) @ b.T * scale``."""

    a: TensorRef
    """``[rank, in]``."""
    b: TensorRef
    """``[out, rank]``."""
    scale: float

    @property
    def rank(self) -> int:
        """Elements between both matrices."""
        return self.a.view_shape[0]


class Adapt(BaseOp, frozen=True, tag="adapt"):
    """``outs[i] = values[i] + (x @ a.T) @ b.T * scale`` in rows whose sequence has an adapter for it.

    Which adapter a sequence has is in `Step.adapters`. Rows of sequences without an adapter, or with one that
    leaves this product as it is, are those of ``values``, bit by bit. A device that computes this states
    `llmd.api.features.ADAPTERS`. Lowering may place ``outs[i]`` in the slot of ``values[i]``.
    """

    kind: ClassVar[str] = "adapt"
    x: str
    """The input of the products."""
    values: tuple[str, ...]
    """Products without adapters."""
    outs: tuple[str, ...]
    """As many as ``values``."""
    factors: tuple[tuple[LowRank | None, ...], ...]
    """For each of ``values`` one entry for each adapter of the model, all in plain formats; None: the adapter
    leaves it as it is."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the values that the op reads."""
        return (self.x, *self.values)

    @property
    def writes(self) -> tuple[str, ...]:
        """Names of the values that the op writes."""
        return self.outs

    @property
    def num_adapters(self) -> int:
        """Number of adapters of the model."""
        return len(self.factors[0])

    @property
    def tensors(self) -> tuple[TensorRef | None, ...]:
        """``a`` and ``b`` of each adapter for the first value, then for the second, and so on."""
        each = (one for of_value in self.factors for one in of_value)
        return tuple(tensor for one in each for tensor in ((one.a, one.b) if one else (None, None)))

    @property
    def scales(self) -> tuple[float, ...]:
        """The scales in the order of `tensors`, one for each pair; 0 for an adapter without one."""
        return tuple(one.scale if one else 0.0 for of_value in self.factors for one in of_value)
