"""`llmd plugins enable` uses a plugin again that was disabled."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from llmd.cli.composition import build_choices

Llmd = Callable[..., Any]


def test_enables_what_was_disabled(llmd: Llmd) -> None:
    llmd("plugins", "disable", "ollama")
    assert llmd("plugins", "enable", "ollama").out == "ollama is now enabled\n"
    assert build_choices().load().disabled == ()
    document = json.loads(llmd("plugins", "enable", "ollama", "--json").out)
    assert (document["plugin"], document["enabled"], document["changed"]) == ("ollama", True, False)


def test_a_plugin_that_is_gone_can_be_enabled(llmd: Llmd) -> None:
    build_choices().set_enabled("made-gone", enabled=False)
    assert llmd("plugins", "enable", "made-gone").code == 0
    assert llmd("plugins", "enable", "made-gone").code == 3
