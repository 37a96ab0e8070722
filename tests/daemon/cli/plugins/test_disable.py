"""`llmd plugins disable` leaves a plugin installed and unused, by commands and by daemons."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Callable
from typing import Any

from llmd.cli.composition import build_host
from llmd.cli.plugins.notices import reload_note
from tests.serving.home import Home

Llmd = Callable[..., Any]


def test_a_disabled_plugin_is_listed_as_such_and_not_used(llmd: Llmd) -> None:
    assert llmd("plugins", "disable", "reference").out == "reference is now disabled\n"
    states = {state["name"]: state for state in json.loads(llmd("plugins", "list", "--json").out)["plugins"]}
    assert (states["reference"]["state"], states["reference"]["reason"]) == ("disabled", "you disabled it")
    assert "reference" not in build_host().backends()
    assert llmd("plugins", "disable", "reference").out == "reference is already disabled\n"
    checks = {check["id"]: check for check in json.loads(llmd("doctor", "plugins", "--json").out)["checks"]}
    assert checks["plugin:reference"]["status"] == "ok"
    assert "you disabled it" in checks["plugin:reference"]["seen"]


def test_a_daemon_and_its_engines_do_not_use_a_disabled_plugin(home: Home) -> None:
    assert home.llmd("plugins", "disable", "reference").returncode == 0
    refused = home.llmd("serve", "tiny", "--device", "reference")
    assert refused.returncode == 1
    assert "reference (llmd-daemon 0.1.0) was disabled: you disabled it" in refused.stderr
    assert "run `llmd plugins enable reference`" in refused.stderr
    assert home.llmd("plugins", "disable", "anthropic").returncode == 0
    with home.serve("tiny") as served:
        assert "unix" in served.line
        assert status(home, "/v1/models") == 200
        assert status(home, "/v1/messages/count_tokens") == 404


def test_a_reload_applies_the_choice_to_a_running_daemon(home: Home) -> None:
    with home.serve() as served:
        assert "unix" in served.line
        assert status(home, "/api/tags") == 200
        changed = home.llmd("plugins", "disable", "ollama")
        assert (changed.stdout, changed.stderr) == (
            "ollama is now disabled\n",
            f"{reload_note('llmd reload')}\n",
        )
        assert status(home, "/api/tags") == 200, "not before the reload"
        assert home.llmd("reload").stdout == "plugin removed: ollama (llmd-daemon 0.1.0)\n"
        assert status(home, "/api/tags") == 404
        assert home.llmd("plugins", "enable", "ollama").stderr == f"{reload_note('llmd reload')}\n"
        assert home.llmd("reload").stdout == "plugin added: ollama (llmd-daemon 0.1.0)\n"
        assert status(home, "/api/tags") == 200


def status(home: Home, path: str) -> int:
    """Return the status of a GET request to the user's socket."""
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(home.socket))
    connection.request("GET", path)
    with contextlib.closing(connection):
        return connection.getresponse().status
