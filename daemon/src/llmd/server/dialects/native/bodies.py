"""Bodies of llmd's own routes, as ``/openapi.json`` describes them."""

from __future__ import annotations

from typing import TypedDict


class StopFields(TypedDict, total=False):
    """What ends."""

    model: str | None
    """Unload this model."""
    daemon: bool | None
    """Shut the daemon down."""


class PullFields(TypedDict):
    """What is fetched."""

    model: str
    """ORG/NAME, ORG/NAME@REVISION or ORG/NAME:QUANTISATION of the hub."""


STOP = (StopFields,)
PULL = (PullFields,)
