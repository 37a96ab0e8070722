"""How another process gets the same weights, so that they need not be sent to it."""

from __future__ import annotations

import pkgutil
from typing import Protocol, runtime_checkable

import msgspec

from llmd.api.quantizer import Quantizer
from llmd.api.tensors import TensorSource


class SourceRecipe(msgspec.Struct, frozen=True):
    """How to make a `TensorSource`."""

    maker: str
    """Dotted name (``package.module:function``) of a function that gets ``arguments`` and the `Quantizer` of
    the device, or None, and returns a `TensorSource`."""
    arguments: tuple[str, ...] = ()

    def make(self, quantizer: Quantizer | None) -> TensorSource:
        """Return the source, for this process."""
        source: TensorSource = pkgutil.resolve_name(self.maker)(*self.arguments, quantizer)
        return source


@runtime_checkable
class HasRecipe(Protocol):
    """A `TensorSource` that another process can make, too."""

    @property
    def recipe(self) -> SourceRecipe: ...
