"""Hooks that plugins implement: one for each plugin kind, no arguments, returning descriptions only.

Each is called once, after the plugin module was imported and its ``LLMD_API`` was checked.
"""

from __future__ import annotations

from collections.abc import Sequence

import pluggy

from llmd.api.plugins import Architecture, Backend, Command, Dialect, Parser, Transport

PROJECT = "llmd"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def llmd_backends() -> Sequence[Backend]:  # type: ignore[empty-body]
    """Kinds of device."""


@hookspec
def llmd_architectures() -> Sequence[Architecture]:  # type: ignore[empty-body]
    """Families of models."""


@hookspec
def llmd_transports() -> Sequence[Transport]:  # type: ignore[empty-body]
    """Ways to connect processes and machines."""


@hookspec
def llmd_dialects() -> Sequence[Dialect]:  # type: ignore[empty-body]
    """HTTP APIs."""


@hookspec
def llmd_parsers() -> Sequence[Parser]:  # type: ignore[empty-body]
    """Ways in which models write reasoning and calls of tools."""


@hookspec
def llmd_commands() -> Sequence[Command]:  # type: ignore[empty-body]
    """Verbs of the ``llmd`` command."""
