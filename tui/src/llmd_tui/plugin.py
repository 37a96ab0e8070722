"""``llmd tui``, a command that a plugin provides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llmd.api import Command, hookimpl

LLMD_API = 2


@hookimpl
def llmd_commands() -> Sequence[Command]:
    return [Command("tui", "Chat with models and watch the daemon on a full screen.", load)]


def load() -> Any:
    from llmd_tui.command import command

    return command
