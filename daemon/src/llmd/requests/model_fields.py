"""Fields of every request to a model."""

from __future__ import annotations

from typing import TypedDict


class NamedModel(TypedDict, total=False):
    """The model of a request."""

    model: str | None
    """The name of the model, which is loaded on demand; absent: the only or first loaded one."""


class KeepAlive(TypedDict, total=False):
    """How long the model of a request stays."""

    keep_alive: float | str | None
    """How long the model stays loaded after the request: seconds, or a duration such as 10m.
    Negative: for ever; 0: until the request ends.
    """


class ModelFields(NamedModel, KeepAlive, total=False):
    """The model of a request, and how long it stays."""
