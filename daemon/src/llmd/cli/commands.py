"""The built-in verbs as a plugin: they are described, listed and defended against other claims as all others."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api import Command, hookimpl
from llmd.cli.verbs import VERBS

LLMD_API = 1


@hookimpl
def llmd_commands() -> Sequence[Command]:
    return [Command(name, verb.help, verb.load) for name, verb in VERBS.items()]
