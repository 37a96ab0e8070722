"""``llmd keys``: who may use the daemon from other machines."""

from __future__ import annotations

from llmd.cli.group import LazyGroup
from llmd.cli.verbs import Verb

VERBS = {
    "add": Verb("llmd.cli.keys.add", "Make an API key and print it once."),
    "list": Verb("llmd.cli.keys.listing", "List the names and rights of keys."),
    "rm": Verb("llmd.cli.keys.rm", "Take a key back."),
}

command = LazyGroup("keys", verbs=VERBS, help="Make, list and take back API keys.")
