"""A reload changes what a running daemon does, all of it or nothing, and no stream notices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import ConfigError, LlmdError
from llmd.host.code_changes import ChangedPlugin
from llmd.server.reloader import ReloadReport
from tests.plugin_sites import Site
from tests.serving.http import chat, open_stream, send
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

DIALECT = """
from aiohttp import web
from llmd.api import Dialect, Route, hookimpl

LLMD_API = 2

async def hello(request, service):
    return web.json_response({"hello": "there"})

@hookimpl
def llmd_dialects():
    return [Dialect("hello", lambda: [Route("GET", "/hello", hello)])]
"""
LONG = {"max_tokens": 300, "ignore_eos": True}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_model(tmp_path / "data" / "models" / MODEL)
    (tmp_path / "config").mkdir()
    return tmp_path


def configure(daemon: RunningDaemon, text: str) -> None:
    daemon.directories.user_config.write_text(text)


def test_changed_settings_are_used_at_once_and_reported(home: Path, probes: Path) -> None:
    with running_daemon(directories_below(home, probes)) as daemon:
        assert chat(daemon, model="gpt").status == 404
        assert send(daemon, "GET", "/health", headers={"Origin": "https://app.example"}).status == 403
        configure(
            daemon,
            """
            [server]
            alias = ["gpt=tiny"]
            allow_origin = ["https://app.example"]
            request_timeout_s = 1e-6
            max_body = 1000
            """,
        )
        reply = send(daemon, "POST", "/llmd/reload", unix=True).json
        assert {change["setting"]: change["applies"] for change in reply["changed"]} == {
            "server.alias": "now",
            "server.allow_origin": "now",
            "server.request_timeout_s": "now",
            "server.max_body": "restart",
        }
        assert send(daemon, "GET", "/health", headers={"Origin": "https://app.example"}).status == 200
        assert chat(daemon).error["code"] == "deadline_exceeded"
        configure(daemon, '[server]\nalias = ["gpt=tiny"]\nmax_body = 1000\n')
        changed = {change.setting for change in daemon.reload().changed}
        assert changed == {"server.allow_origin", "server.request_timeout_s", "server.max_body"}
        assert chat(daemon, model="gpt").status == 200
        assert chat(daemon, "x", user="y" * 2000).status == 200  # the limit of bodies needs a restart


def test_limits_and_keep_alive_reach_models_that_are_loaded(home: Path, probes: Path) -> None:
    with running_daemon(directories_below(home, probes), models=(), slots=1) as daemon:
        assert chat(daemon).status == 200
        configure(daemon, '[server]\nmax_queue = 0\nkeep_alive = "2h"\n')
        daemon.reload()
        (row,) = send(daemon, "GET", "/api/ps").json["models"]
        assert row["expires_at"] is not None
        with open_stream(daemon, LONG) as reply:
            reply.readline()
            refused = chat(daemon)
            assert (refused.status, refused.error["code"]) == (503, "queue_full")


@pytest.mark.parametrize(
    "text",
    [
        "[server]\nmax_queue = 7\nallow_origin = ['nonsense']\n",
        "[server]\nmax_queue = 7\nslots\n",
        "[server]\nmax_queue = 7\ntool_parser = 'nobody'\n",
        "[server]\nmax_queue = 7\n[engine]\nslots = 0\n",
    ],
)
def test_one_bad_setting_changes_nothing(home: Path, probes: Path, text: str) -> None:
    with running_daemon(directories_below(home, probes), models=()) as daemon:
        configure(daemon, text)
        with pytest.raises(ConfigError, match=r"config\.toml"):
            daemon.reload()
        refused = send(daemon, "POST", "/llmd/reload", unix=True)
        assert (refused.status, refused.error["code"]) == (500, "config_invalid")
        configure(daemon, "")
        assert daemon.reload() == ReloadReport()  # nor was a part of it kept


def test_a_key_that_is_needed_must_exist(home: Path, probes: Path) -> None:
    flags: dict[str, Any] = {"addr": ["0.0.0.0:0", f"unix:{home}/run/llmd.sock"]}
    configuration = home / "config" / "config.toml"
    configuration.write_text("[server]\nno_auth = true\n")
    with running_daemon(directories_below(home, probes), models=(), **flags) as daemon:
        configuration.write_text("")
        with pytest.raises(ConfigError, match="no key protects it"):
            daemon.reload()


def test_new_plugins_serve_and_streams_go_on(home: Path, probes: Path, site: Site) -> None:
    with running_daemon(directories_below(home, probes)) as daemon:
        with open_stream(daemon, LONG) as reply:
            undisturbed = reply.read()
        with open_stream(daemon, LONG) as reply:
            begun = reply.readline()
            site.write("hello", DIALECT)
            assert daemon.reload().new_plugins == ("hello (made-hello 1.0)",)
            assert send(daemon, "GET", "/hello").json == {"hello": "there"}
            assert "/hello" in send(daemon, "GET", "/openapi.json").json["paths"]
            rest = reply.read()
        assert content(begun + rest) == content(undisturbed)
        for path in site.folder.iterdir():
            if path.name.endswith(".dist-info"):
                (path / "entry_points.txt").unlink()
        assert daemon.reload().lost_plugins == ("hello (made-hello 1.0)",)
        assert send(daemon, "GET", "/hello").status == 404


def test_a_plugin_that_takes_a_route_of_another_changes_nothing(home: Path, probes: Path, site: Site) -> None:
    with running_daemon(directories_below(home, probes), models=()) as daemon:
        site.write("hello", DIALECT.replace('"/hello"', '"/health"'))
        with pytest.raises(LlmdError, match="two dialects serve GET /health"):
            daemon.reload()
        assert send(daemon, "GET", "/health").json == {"status": "ok"}


def content(events: bytes) -> str:
    data = [
        line.removeprefix("data: ") for line in events.decode().splitlines() if line.startswith("data: {")
    ]
    choices = [choice for line in data for choice in json.loads(line)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def test_new_code_of_what_the_daemon_imported_needs_a_restart(home: Path, probes: Path, site: Site) -> None:
    site.write("hello", DIALECT)
    with running_daemon(directories_below(home, probes), models=()) as daemon:
        assert daemon.reload() == ReloadReport()
        (site.folder / "made_hello-1.0.dist-info").rename(site.folder / "gone")
        site.write("hello", DIALECT.replace('"there"', '"again"'), version="2.0")
        for _ in range(2):  # until the restart, each reload says so
            report = daemon.reload()
            assert (report.new_plugins, report.lost_plugins) == ((), ())
            assert report.changed_plugins == (ChangedPlugin("hello (made-hello 2.0)", "restart"),)
            assert send(daemon, "GET", "/hello").json == {"hello": "there"}


def test_an_edit_that_breaks_a_plugin_is_reported_and_the_old_code_goes_on(
    home: Path, probes: Path, site: Site
) -> None:
    site.write("hello", DIALECT)
    with running_daemon(directories_below(home, probes), models=()) as daemon:
        module = site.folder / "made_hello.py"
        module.write_text("import no_such_module\n" + DIALECT)
        (changed,) = daemon.reload().changed_plugins
        assert (changed.plugin, changed.applies) == ("hello (made-hello 1.0)", "restart")
        assert "No module named 'no_such_module'" in changed.reason
        assert send(daemon, "GET", "/hello").json == {"hello": "there"}


def test_a_plugin_that_is_repaired_is_used_at_once(home: Path, probes: Path, site: Site) -> None:
    site.write("hello", "import no_such_module\n" + DIALECT)
    with running_daemon(directories_below(home, probes), models=()) as daemon:
        assert send(daemon, "GET", "/hello").status == 404
        (site.folder / "made_hello.py").write_text(DIALECT)
        assert daemon.reload().changed_plugins == (ChangedPlugin("hello (made-hello 1.0)", "now"),)
        assert send(daemon, "GET", "/hello").json == {"hello": "there"}


def test_a_plugin_that_returns_with_other_code_needs_a_restart(home: Path, probes: Path, site: Site) -> None:
    site.write("hello", DIALECT)
    with running_daemon(directories_below(home, probes), models=()) as daemon:
        points = site.folder / "made_hello-1.0.dist-info" / "entry_points.txt"
        text = points.read_text()
        points.unlink()
        assert daemon.reload().lost_plugins == ("hello (made-hello 1.0)",)
        points.write_text(text)
        (site.folder / "made_hello.py").write_text(DIALECT.replace('"there"', '"once more"'))
        report = daemon.reload()
        assert report.new_plugins == ()
        assert [change.applies for change in report.changed_plugins] == ["restart"]


def test_new_engines_get_new_code_of_devices(home: Path, probes: Path, site: Site, example: Path) -> None:
    site.install_project(example)
    with running_daemon(directories_below(home, probes), models=()) as daemon:
        (site.folder / "llmd_backend_example" / "more.py").write_text("")
        (change,) = daemon.reload().changed_plugins
        assert (change.applies, change.reason) == ("next_load", "")
        assert daemon.reload() == ReloadReport()
