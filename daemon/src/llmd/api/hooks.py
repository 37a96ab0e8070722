"""Hooks that plugins implement, one for each kind of plugin; they return descriptions only.

All hooks of a plugin are called together, right after the plugin was imported and its ``LLMD_API`` checked.
This happens in each process that needs one of its descriptions, perhaps more than once, and whenever the
plugin is new or has changed; otherwise the stored names of what it provides are used.
"""

from __future__ import annotations

from collections.abc import Sequence

import pluggy

from llmd.api.plugins import Architecture, Backend, Command, Dialect, Parser, Transport

PROJECT = "llmd"
"""Name of the project in pluggy."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Decorator of a plugin's hooks."""


@hookspec
def llmd_backends() -> Sequence[Backend]:  # type: ignore[empty-body]
    """Return kinds of devices. Called before devices are probed, measured or opened."""


@hookspec
def llmd_architectures() -> Sequence[Architecture]:  # type: ignore[empty-body]
    """Return families of models. Called before a model is planned, in an engine or for a conversion."""


@hookspec
def llmd_transports() -> Sequence[Transport]:  # type: ignore[empty-body]
    """Return ways to connect processes and machines. Called before a link is made."""


@hookspec
def llmd_dialects() -> Sequence[Dialect]:  # type: ignore[empty-body]
    """Return HTTP APIs. Called when the daemon starts, before its HTTP server."""


@hookspec
def llmd_parsers() -> Sequence[Parser]:  # type: ignore[empty-body]
    """Return formats in which models write reasoning and tool calls. Called when the daemon starts."""


@hookspec
def llmd_commands() -> Sequence[Command]:  # type: ignore[empty-body]
    """Return subcommands of ``llmd``. Called when one of them is run."""
