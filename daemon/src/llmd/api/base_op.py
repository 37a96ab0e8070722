"""The base class of the ops of model programs."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from llmd.api.tensors import TensorRef


class BaseOp(msgspec.Struct, frozen=True):
    """Base class of all ops."""

    kind: ClassVar[str]
    """Name of the op in `OP_KINDS`."""
    read_fields: ClassVar[tuple[str, ...]] = ("x",)
    """Fields that name values to read; None for an optional value that an op lacks."""
    write_fields: ClassVar[tuple[str, ...]] = ("out",)
    """Fields that name values to write."""
    tensor_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that hold tensors."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the values that the op reads."""
        return tuple(name for field in self.read_fields if (name := getattr(self, field)) is not None)

    @property
    def writes(self) -> tuple[str, ...]:
        """Names of the values that the op writes."""
        return tuple(getattr(self, field) for field in self.write_fields)

    @property
    def tensors(self) -> tuple[TensorRef | None, ...]:
        """Checkpoint tensors of the op; None for an optional tensor that it lacks."""
        return tuple(getattr(self, field) for field in self.tensor_fields)
