"""`llmd plugins search` lists known plugins, with the versions that are installed."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

Llmd = Callable[..., Any]


def test_finds_by_word_and_shows_what_is_installed(llmd: Llmd) -> None:
    rows = json.loads(llmd("plugins", "search", "transport", "--json").out)["plugins"]
    (row,) = rows
    assert (row["name"], row["installed"]) == ("llmd-transport", metadata.version("llmd-transport"))
    assert row["added"] == "2026-11-25"
    assert "llmd-backend-cpu" in llmd("plugins", "search").out
    assert "no known plugin matches" in llmd("plugins", "search", "no-such-word").err


def test_another_list_may_be_searched(llmd: Llmd, tmp_path: Path) -> None:
    path = tmp_path / "list.toml"
    path.write_text(
        '[[plugins]]\nname = "made"\nsummary = "s"\nprovides = ["parser"]\ninstall = "made"\nadded = 2026-01-02\n'
    )
    rows = llmd("plugins", "search", "--index", str(path), "--plain").out.splitlines()
    assert rows == ["NAME\tPROVIDES\tINSTALLED\tADDED\tSUMMARY", "made\tparser\t–\t2026-01-02\ts"]
    assert llmd("plugins", "search", "--index", str(tmp_path / "none")).code == 3
