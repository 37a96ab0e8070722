"""What all shapes have in common."""

from __future__ import annotations

from msgspec import Struct


class Shape(Struct, frozen=True, forbid_unknown_fields=True):
    """An object with exactly these fields; one without a default is required, also where it may be null."""


class TypedShape(Shape, frozen=True, tag_field="type"):
    """A `Shape` that its ``type`` tells apart from others."""
