"""`llmd plugins info` shows everything about one plugin."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from llmd.cli.plugins.info import seconds, shown_files

Llmd = Callable[..., Any]


def test_shows_titles_and_values(llmd: Llmd) -> None:
    done = llmd("plugins", "info", "local")
    assert done.code == 0
    rows = dict(line.split("  ", 1) for line in done.out.splitlines())
    rows = {title: value.strip() for title, value in rows.items()}
    assert rows["distribution"].startswith("llmd-transport ")
    assert (rows["state"], rows["contract"], rows["provides transport"]) == ("ok", "2", "local")
    assert rows["entry points"] == "local = llmd_transport.local"
    assert "reason" not in rows
    assert rows["probe"].endswith(" s")


def test_json_has_every_field(llmd: Llmd) -> None:
    plugin = json.loads(llmd("plugins", "info", "llmd-transport", "--json").out)["plugin"]
    assert plugin["provides"] == {"transport": ["local"]}
    assert plugin["probe_s"] > plugin["import_s"] > 0
    assert plugin["files"]
    assert {"homepage", "licence", "requires", "location", "fix"} <= plugin.keys()


def test_an_unknown_plugin_ends_with_three(llmd: Llmd) -> None:
    assert llmd("plugins", "info", "made-nothing").code == 3


def test_the_first_files_stand_for_all() -> None:
    assert shown_files(()) == "not listed"
    assert shown_files(("a", "b")) == "2: a, b"
    assert shown_files(tuple("abcdefg")) == "7: a, b, c, d, e, …"


def test_times_that_were_not_measured_are_not_shown() -> None:
    assert (seconds(0.0), seconds(1.234)) == ("", "1.23 s")
