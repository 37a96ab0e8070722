"""`llmd version` prints the versions of the client, the daemon and the plugins."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest

from llmd.api.plugins import API_VERSION
from llmd.client import Client

Llmd = Callable[..., Any]

MINE = version("llmd-daemon")


def test_names_client_and_daemon(asked: Llmd) -> None:
    assert asked("version").out == f"llmd {MINE}\ndaemon {MINE}\n"


def test_json_adds_the_contract_and_the_plugins(asked: Llmd) -> None:
    document = json.loads(asked("version", "--json").out)
    assert (document["client"], document["daemon"], document["plugin_api"]) == (MINE, MINE, API_VERSION)
    assert "llmd-daemon" in {plugin["distribution"] for plugin in document["plugins"]}


def test_without_a_daemon_the_client_is_known_all_the_same(llmd: Llmd, tmp_path: Any) -> None:
    nowhere = f"unix:{tmp_path}/none.sock"
    assert llmd("version", "--host", nowhere).out == f"llmd {MINE}\nno daemon is running\n"
    assert json.loads(llmd("version", "--json", "--host", nowhere).out)["daemon"] is None


def test_warns_where_client_and_daemon_differ(asked: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Client, "version", lambda _: "0.0.1")
    done = asked("version")
    assert done.out == f"llmd {MINE}\ndaemon 0.0.1\n"
    assert "llmd stop --daemon" in done.err
