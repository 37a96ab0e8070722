"""What plugins describe themselves with. Every description is frozen; its callables run later, one phase at a time.

A plugin is a module found through the entry-point group ``llmd``. At its top level it imports only
``llmd.api`` and the standard library, sets ``LLMD_API = 1`` and implements hooks of `llmd.api.hooks`.
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

API_VERSION = 1
"""The contract's version. A plugin whose ``LLMD_API`` differs is set aside, with both numbers named."""

ENTRY_POINT_GROUP = "llmd"

Config = Mapping[str, Any]
"""A parsed ``config.json``: outside data, hence Any."""


class Backend(msgspec.Struct, frozen=True):
    """A kind of device.

    ``probe()`` returns the devices of this machine. It imports its toolkit inside, raises for nothing that is
    merely absent, and runs in a child process with a time limit. ``open(name, options)`` returns the device of that
    `DeviceInfo.name`; it runs in the engine process and may raise `DeviceError`.

    ``driver`` (optional) is the driver that the devices need, as a sentence names it (``the NVIDIA driver``): users are
    told to check it where a probe crashes or hangs. Empty: the devices need none.
    """

    name: str
    probe: Callable[[], Sequence[DeviceInfo]]
    open: Callable[[str, DeviceOptions], Device]
    driver: str = ""


class Architecture(msgspec.Struct, frozen=True):
    """A family of models.

    ``names`` are the values of ``architectures`` or ``model_type`` in ``config.json``. ``plan(config, context_len)``
    returns the model as a program for a context window in tokens (None: the longest the model states).

    It raises `UnsupportedModelError` for an option that it does not know and `CheckpointError` (file
    ``config.json``) for a missing or inconsistent field.
    """

    names: tuple[str, ...]
    plan: Callable[[Config, int | None], ModelPlan]


class Transport(msgspec.Struct, frozen=True):
    """A way to connect processes or machines.

    ``connect(address, timeout_s)`` and ``listen(address)`` take addresses ``scheme://…``; both raise `LinkError`.
    """

    scheme: str
    connect: Callable[[str, float], Link]
    listen: Callable[[str], Listener]


Right = Literal["none", "use", "manage"]
"""What a request must be allowed to do: nothing, use models, or change what the daemon has and does."""


class Route(msgspec.Struct, frozen=True):
    """One HTTP route: ``handler(request, service)`` is a coroutine that returns an aiohttp response.

    A ``path`` that ends in ``/{name}`` takes the whole rest of the path, slashes included. HEAD is answered by a GET
    route, unless the path has a route for it. Requests of a ``probe`` are left out of the log: clients send them again and
    again to see whether somebody answers. ``right`` is what a sender needs: an API key may lack ``manage``.
    """

    method: Literal["GET", "HEAD", "POST", "DELETE"]
    path: str
    handler: Callable[[Any, Any], Awaitable[Any]]
    probe: bool = False
    right: Right = "use"


class Dialect(msgspec.Struct, frozen=True):
    """An HTTP API. ``routes()`` imports its handlers and returns them. Without ``errors``, errors are OpenAI's."""

    name: str
    routes: Callable[[], Sequence[Route]]
    errors: ErrorShape | None = None


class Parser(msgspec.Struct, frozen=True):
    """How a family of models writes its reasoning (``load()`` returns `ReasoningMarks`) or its calls (`CallFormat`).

    ``matches(template)`` tells from the source of a chat template whether a model writes so: 0 for no; of several that
    match, the highest wins, then the first by name.
    """

    name: str
    reads: Literal["calls", "reasoning"]
    matches: Callable[[str], int]
    load: Callable[[], CallFormat | ReasoningMarks]


class Command(msgspec.Struct, frozen=True):
    """A subcommand of ``llmd``. ``load()`` returns a ``click.Command``; ``help`` is its one-line summary."""

    name: str
    help: str
    load: Callable[[], Any]
