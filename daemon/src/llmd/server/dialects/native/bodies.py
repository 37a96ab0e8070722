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


class CancelFields(TypedDict):
    """What is cancelled."""

    request_id: str
    """The id of a request that runs or waits."""


class LoadFields(TypedDict, total=False):
    """What is loaded."""

    model: str
    """A model of the store."""
    keep_alive: str | float | None
    """How long it stays loaded without requests: seconds, or a text such as 10m; negative: forever."""


STOP = (StopFields,)
PULL = (PullFields,)
CANCEL = (CancelFields,)
LOAD = (LoadFields,)
