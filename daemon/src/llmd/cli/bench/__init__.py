"""``llmd bench``: how fast a server is, and the loop inside it."""

from __future__ import annotations

from llmd.cli.group import LazyGroup
from llmd.cli.verbs import Verb

VERBS = {
    "engine": Verb("llmd.cli.bench.engine", "Say what the engine's loop costs by itself."),
    "serve": Verb("llmd.cli.bench.serve", "Put a load on a server and say what its clients see."),
}

command = LazyGroup("bench", verbs=VERBS, help="Measure how fast a server is, or the loop inside it.")
