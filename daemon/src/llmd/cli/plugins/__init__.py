"""``llmd plugins``: what is installed, in which state, and how more is added."""

from __future__ import annotations

from llmd.cli.group import LazyGroup
from llmd.cli.verbs import Verb

VERBS = {
    "list": Verb("llmd.cli.plugins.listing", "List installed plugins, their states and why one is not used."),
    "install": Verb("llmd.cli.plugins.install", "Install a plugin and probe it."),
}

command = LazyGroup("plugins", verbs=VERBS, help="List and install plugins.")
