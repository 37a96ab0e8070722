"""`llmd config show` lists every setting, its value and its origin."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import ConfigError
from llmd.cli.config.secrets import HIDDEN
from llmd.cli.config.show import SettingRow, text
from llmd.config.setting_values import setting_fields

Llmd = Callable[..., Any]


def settings(llmd: Llmd, *arguments: str) -> dict[str, Any]:
    rows = json.loads(llmd("config", "show", "--json", *arguments).out)["settings"]
    return {row["name"]: (row["value"], row["origin"]) for row in rows}


def test_every_setting_is_shown(llmd: Llmd) -> None:
    settings_of_parts = {
        "server.addr",
        "server.max_body",
        "server.max_queue",
        "server.keep_alive",
        "server.otlp_endpoint",
        "registry.hub",
    }
    assert settings(llmd).keys() == setting_fields().keys() > settings_of_parts


def test_variables_win_over_the_file_and_the_file_over_defaults(
    llmd: Llmd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config" / "llmd" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("[engine]\nslots = 3\nmax_ctx = 99\n")
    monkeypatch.setenv("LLMD_SLOTS", "5")
    shown = settings(llmd)
    assert shown["engine.slots"] == (5, "LLMD_SLOTS")
    assert shown["engine.max_ctx"] == (99, str(file))
    assert shown["engine.device"] == ("auto", "default")


def test_settings_of_single_models_follow(llmd: Llmd, tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text('[models."org/a"]\ntool_parser = "hermes"\n[models.guide]\nmax_ctx = 9\n')
    shown = settings(llmd, "--config", str(file))
    assert shown["server.tool_parser"] == ("auto", "default")
    assert shown['models."org/a".tool_parser'] == ("hermes", str(file))
    assert shown["models.guide.max_ctx"] == (9, str(file))


def test_another_file_stands_in_for_the_users(llmd: Llmd, tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text('[server]\naddr = ["127.0.0.1:9"]\n')
    assert settings(llmd, "--config", str(file))["server.addr"] == (["127.0.0.1:9"], str(file))
    missing = llmd("config", "show", "--config", str(tmp_path / "none"))
    assert (missing.code, missing.out) == (ConfigError.exit_code, "")


def test_people_read_units_and_what_holds_where_nothing_is_set() -> None:
    rows = [
        SettingRow("engine.kv_spool", 1 << 30, "default"),
        SettingRow("engine.threads", None, "default"),
        SettingRow("server.tls_cert", None, "default"),
        SettingRow('models."org/a".keep_alive', 60.0, "/x"),
        SettingRow("client.api_key", HIDDEN, "LLMD_API_KEY"),
    ]
    assert [text(row) for row in rows] == ["1.0 GiB", "(the fastest number)", "", "1m", HIDDEN]


def test_keys_are_not_shown(llmd: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings(llmd)["client.api_key"] == (None, "default")
    monkeypatch.setenv("LLMD_API_KEY", "llmd-secret")
    assert settings(llmd)["client.api_key"] == ("(hidden)", "LLMD_API_KEY")


def test_long_adds_defaults_and_meanings(llmd: Llmd, file: Path) -> None:
    llmd("config", "set", "slots", "3")
    lines = llmd("config", "show", "--long", "--plain").out.splitlines()
    assert lines[0].split("\t") == ["NAME", "VALUE", "ORIGIN", "DEFAULT", "DESCRIPTION"]
    assert f"engine.slots\t3\t{file}:2\t8\tSequences that run at a time." in lines
    assert llmd("config", "show", "--plain", "--columns", "name,default").out.startswith("NAME\tDEFAULT\n")
    rows = json.loads(llmd("config", "show", "--json").out)["settings"]
    assert {"line", "default", "description"} <= rows[0].keys()
