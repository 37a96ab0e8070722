"""``llmd bench``: how fast a server is, and the loop inside it."""

from __future__ import annotations

from llmd.cli.group import LazyGroup
from llmd.cli.subcommands import Subcommand

SUBCOMMANDS = {
    "engine": Subcommand("llmd.cli.bench.engine", "Say what the engine's loop costs by itself."),
    "serve": Subcommand("llmd.cli.bench.serve", "Put a load on a server and say what its clients see."),
}

command = LazyGroup(
    "bench", subcommands=SUBCOMMANDS, help="Measure how fast a server is, or the loop inside it."
)
