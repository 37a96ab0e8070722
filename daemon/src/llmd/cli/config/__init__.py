"""``llmd config``: settings, and where they are kept."""

from __future__ import annotations

from llmd.cli.group import LazyGroup
from llmd.cli.verbs import Verb

VERBS = {
    "show": Verb("llmd.cli.config.show", "Show every setting, its value and where it came from."),
    "paths": Verb("llmd.cli.config.paths", "Show which files and folders are used."),
}

command = LazyGroup("config", verbs=VERBS, help="Show settings and where each came from.")
