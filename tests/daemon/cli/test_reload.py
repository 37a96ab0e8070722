from __future__ import annotations

import json

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
