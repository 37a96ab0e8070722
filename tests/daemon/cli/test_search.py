"""``llmd search`` in the list of short names and on a hub."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from llmd.registry.short_names import short_names
from tests.serving.hub import Hub, Repository

Llmd = Callable[..., Any]


def test_the_list_needs_no_hub(llmd: Llmd) -> None:
    done = llmd("search", "--plain", "--columns", "NAME,REPOSITORY")
    assert "qwen3:0.6b\tQwen/Qwen3-0.6B" in done.out
    assert len(done.out.splitlines()) == 1 + len(short_names())
    some = llmd("search", "code", "--offline", "--json")
    assert {row["name"].partition(":")[0] for row in json.loads(some.out)["models"]} == {"qwen2.5-coder"}


def test_repositories_of_the_hub_follow_the_most_downloaded_first(llmd: Llmd, hub: Hub) -> None:
    hub.repositories |= {"a/tinyllama-one": Repository({}), "b/tinyllama-two": Repository({}, token="t")}
    done = llmd("search", "tinyllama", "--hub", hub.url, "--json")
    rows = json.loads(done.out)["models"]
    assert [row["name"] for row in rows] == ["tinyllama", "b/tinyllama-two", "a/tinyllama-one"]
    assert rows[1]["about"] == "its authors' terms must be accepted first"
    assert (rows[0]["downloads"], rows[1]["downloads"]) == (None, 20)
    assert (
        len(json.loads(llmd("search", "tiny", "--hub", hub.url, "--limit", "1", "--json").out)["models"]) == 2
    )


def test_a_hub_that_fails_leaves_the_list(llmd: Llmd, hub: Hub) -> None:
    hub.failing = [503] * 9
    done = llmd("search", "qwen3", "--hub", hub.url, "--plain")
    assert done.code == 0
    assert "Qwen/Qwen3-4B" in done.out
    assert "only llmd's own list was searched" in done.err
    hub.failing = [503] * 9
    nothing = llmd("search", "xyzzy", "--hub", hub.url)
    assert nothing.code == 1
    assert "answers 503" in nothing.err


def test_check_names_what_is_gone(llmd: Llmd, hub: Hub) -> None:
    for entry in short_names().values():
        hub.repositories[entry.repo] = Repository({"config.json": b"{}"})
    assert llmd("search", "--check", "--hub", hub.url).code == 0
    del hub.repositories["BAAI/bge-m3"]
    hub.repositories["microsoft/phi-4"] = Repository({"README.md": b"#"})
    done = llmd("search", "--check", "--hub", hub.url)
    assert done.code == 8
    assert "✗ BAAI/bge-m3: " in done.out
    assert "✗ microsoft/phi-4: it has no config.json" in done.out
    assert "✓ Qwen/Qwen3-4B" in done.out
    assert llmd("search", "--check", "--offline").code == 2
