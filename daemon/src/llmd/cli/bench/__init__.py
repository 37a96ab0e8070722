"""``llmd bench``: how fast a server is."""

from __future__ import annotations

from llmd.cli.group import LazyGroup
from llmd.cli.verbs import Verb

VERBS = {
    "serve": Verb("llmd.cli.bench.serve", "Put a load on a server and say what its clients see."),
}

command = LazyGroup("bench", verbs=VERBS, help="Measure how fast a server is.")
