"""``llmd bench``: benchmarks of a server and of the engine loop."""

from __future__ import annotations

from llmd.cli.group import LazyGroup
from llmd.cli.subcommands import Subcommand

SUBCOMMANDS = {
    "engine": Subcommand("llmd.cli.bench.engine", "Measure the overhead of the engine loop."),
    "serve": Subcommand("llmd.cli.bench.serve", "Benchmark a server under load."),
}

command = LazyGroup("bench", subcommands=SUBCOMMANDS, help="Benchmark a server or the engine loop.")
