"""The descriptions that hooks of plugins return. They are frozen; their callables run later, when needed.

A plugin is a module found through the entry-point group ``llmd``. At its top level it imports only
``llmd.api`` and the standard library, sets ``LLMD_API = 2`` and implements hooks of `llmd.api.hooks`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from llmd.api.problem import ErrorShape

if TYPE_CHECKING:  # describing a plugin must not cost the import of numpy
    from llmd.api.device import Device, DeviceInfo, DeviceOptions
    from llmd.api.parsing import CallFormat, ReasoningMarks
    from llmd.api.plan import ModelPlan
    from llmd.api.transport import Link, Listener

API_VERSION = 2
"""Version of this contract. A plugin with another ``LLMD_API`` is not used; the error names both numbers.
New fields with defaults do not raise it; if one changes results, it is a feature (`llmd.api.features`)."""

ENTRY_POINT_GROUP = "llmd"
"""Entry-point group that plugins register in."""

Config = Mapping[str, Any]
"""A parsed ``config.json``: external data, hence Any."""


class Backend(msgspec.Struct, frozen=True):
    """A kind of device."""

    name: str
    """Kind of its devices."""
    probe: Callable[[], Sequence[DeviceInfo]]
    """Return the devices of this machine. Called in a child process with a time limit. Import the toolkit
    inside; missing hardware or drivers are not errors."""
    open: Callable[[str, DeviceOptions], Device]
    """Open the device with that `DeviceInfo.name`. Called in the engine process, and in the child processes
    that test and measure devices; may raise `DeviceError`."""
    driver: str = ""
    """(optional) Driver that the devices need, as written in a sentence (``the NVIDIA driver``). When a probe
    crashes or hangs, users are asked to check it. Empty: no driver."""
    probe_timeout_s: float = 10.0
    """(optional) Seconds of processor time for each step of a probe; six times as long by the
    wall clock. The steps are: to find the devices, and for each device to open and try it."""
    prepare: Callable[[str], None] | None = None
    """(optional) Compile the kernels of the device with that `DeviceInfo.name` and store them on disk. Called
    in the child process of the probe, for each usable device before it is tried; returns at once if they are
    stored. Stored kernels may be deleted at any time; the device then compiles them when it needs them."""
    prepare_timeout_s: float = 600.0
    """(optional) Seconds of wall time that ``prepare`` may take for one device."""
    isolated: bool = False
    """(optional) Its driver or toolkit should not share a process with that of another isolated backend. If a
    model uses devices of two of them, the engine opens each device of the second one in a process of its own
    (docs/decisions/0073)."""


class Architecture(msgspec.Struct, frozen=True):
    """A family of models."""

    names: tuple[str, ...]
    """Values of ``architectures`` or ``model_type`` in ``config.json``."""
    plan: Callable[[Config, int | None], ModelPlan]
    """Return the model as a program for a context window in tokens (None: the longest that the model states).
    Called when a model is opened. Raises `UnsupportedModelError` for an unknown option, `CheckpointError`
    (file ``config.json``) for a missing or inconsistent field."""


class Transport(msgspec.Struct, frozen=True):
    """A way to connect processes or machines. Addresses have the form ``scheme://…``."""

    scheme: str
    """Scheme of the addresses."""
    connect: Callable[[str, float], Link]
    """Connect to an address within a timeout in seconds; raises `LinkError`."""
    listen: Callable[[str], Listener]
    """Listen at an address; raises `LinkError`."""


Right = Literal["none", "use", "manage"]
"""Permission that a request needs: none, to use models, or to manage the daemon."""


class Route(msgspec.Struct, frozen=True):
    """One HTTP route."""

    method: Literal["GET", "HEAD", "POST", "DELETE"]
    """A GET route also answers HEAD, unless the path has a HEAD route."""
    path: str
    """If it ends in ``/{name}``, the name matches the whole rest of the path, slashes included."""
    handler: Callable[[Any, Any], Awaitable[Any]]
    """Coroutine ``handler(request, service)`` that returns an aiohttp response."""
    probe: bool = False
    """Clients poll this route to see how the daemon is; its requests are not logged."""
    right: Right = "use"
    """Permission that the sender needs; API keys may lack ``manage``."""
    body: tuple[type, ...] = ()
    """(optional) The fields of the JSON body, for ``GET /openapi.json``: ``TypedDict`` classes with types and
    docstrings. Of two fields of one name, the last counts. Empty: the route reads no body."""
    replies: tuple[str, ...] = ("application/json",)
    """(optional) Media types of successful replies, for ``GET /openapi.json``: for streams
    ``text/event-stream`` or ``application/x-ndjson``. ``websocket``: the route opens one. Empty: it refuses
    every request."""
    query: tuple[str, ...] = ()
    """(optional) Names of query parameters, for ``GET /openapi.json``."""
    in_shutdown: bool = False
    """(optional) The route is answered during a shutdown too, as those are that only read."""


class Dialect(msgspec.Struct, frozen=True):
    """An HTTP API."""

    name: str
    """Unique among dialects."""
    routes: Callable[[], Sequence[Route]]
    """Import the handlers and return the routes. Called once, when the HTTP server starts."""
    errors: ErrorShape | None = None
    """Form of its errors; None: that of OpenAI."""


class Parser(msgspec.Struct, frozen=True):
    """How a family of models writes its reasoning or its tool calls."""

    name: str
    """Name in settings."""
    reads: Literal["calls", "reasoning"]
    """What it parses."""
    matches: Callable[[str], int]
    """Rate how well the parser fits a model, given the source of its chat template; 0: not at all. Of several
    parsers that fit, the highest rating wins, then the first name."""
    load: Callable[[], CallFormat | ReasoningMarks]
    """Return a `CallFormat` if it ``reads`` calls, else `ReasoningMarks`."""


class Command(msgspec.Struct, frozen=True):
    """A subcommand of ``llmd``."""

    name: str
    """What users type."""
    help: str
    """One-line summary."""
    load: Callable[[], Any]
    """Return the ``click.Command``. Called when the command is run or its help is shown."""
