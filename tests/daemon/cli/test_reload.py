from __future__ import annotations

import json

from llmd.cli.reload import plugin_lines
from tests.daemon.cli.conftest import Llmd
from tests.serving.home import Home


def test_changes_are_shown_with_the_time_at_which_they_apply(home: Home) -> None:
    config = home.folder / "config" / "llmd" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    with home.serve("--max-ctx", "64"):
        assert home.llmd("reload").stdout == "nothing has changed\n"
        config.write_text(
            '[server]\nkeep_alive = "1h"\nmax_body = "1KiB"\n[engine]\nslots = 3\nmax_ctx = 7\n'
        )
        done = home.llmd("reload")
        assert sorted(done.stdout.splitlines()) == [
            "engine.slots: 8 -> 3 (in force when a model is loaded next)",
            "server.keep_alive: 5m -> 1h (in force now)",
            "server.max_body: 64.0 MiB -> 1.0 KiB (needs a restart of the daemon)",
        ]
        assert json.loads(home.llmd("reload", "--json").stdout)["reloaded"] is True


def test_a_bad_value_is_named_and_nothing_changes(home: Home) -> None:
    config = home.folder / "config" / "llmd" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    with home.serve():
        config.write_text("[server]\nmax_queue = 3\nlog_level = 'loud'\n")
        done = home.llmd("reload")
        assert done.returncode != 0
        assert "server.log_level" in done.stderr
        config.write_text("")
        assert home.llmd("reload").stdout == "nothing has changed\n"


def test_without_a_daemon_there_is_nothing_to_reload(llmd: Llmd, home: Home) -> None:
    assert home.llmd("reload").returncode == 6


def test_a_changed_plugin_has_a_line_that_says_when_it_is_used() -> None:
    plugin = {"plugin": "shout (made-shout 2.0)", "applies": "restart", "reason": "", "fix": ""}
    lines = ["plugin changed: shout (made-shout 2.0) is used after a restart of the daemon"]
    assert plugin_lines(plugin) == lines
    broken = {**plugin, "reason": "importing made_shout raised E", "fix": "repair it"}
    assert plugin_lines(broken) == [
        (
            "plugin changed: shout (made-shout 2.0) cannot be used: importing made_shout raised E;"
            " until a restart, the daemon uses the code that it has loaded"
        ),
        "  fix: repair it",
    ]
    assert "restart" not in plugin_lines({**broken, "applies": "next_load"})[0]
