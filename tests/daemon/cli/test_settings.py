"""Flags override every other source of the configuration."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from llmd.api.errors import ConfigError
from llmd.cli.settings import client_options, daemon_settings, read_settings, serving_options
from llmd.config.schema import ClientConfig, EngineConfig
from llmd.config.setting_values import setting_fields

Llmd = Callable[..., Any]


@pytest.fixture(autouse=True)
def no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def names_of(options: Callable[[Callable[..., None]], Callable[..., None]]) -> set[str]:
    @click.command()
    @options
    def command(**_: Any) -> None: ...

    return {parameter.name or "" for parameter in command.params}


def test_every_setting_of_the_engine_is_a_flag_of_serve() -> None:
    flags = names_of(serving_options)
    assert set(EngineConfig.__struct_fields__) <= flags
    others = {key.partition(".")[2] for key in setting_fields() if key.startswith(("server.", "registry."))}
    assert flags - set(EngineConfig.__struct_fields__) - {"config_file"} <= others


def test_every_setting_of_clients_but_keys_is_a_flag_of_client_commands() -> None:
    """Every user of the machine can see command lines, so a key goes into the file or the environment."""
    settings = set(ClientConfig.__struct_fields__) - {"api_key", "ca_file"}
    assert names_of(client_options) == {*settings, "config_file"}


def test_a_flag_wins_over_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMD_SLOTS", "5")
    assert read_settings(None, slots=None).config.engine.slots == 5
    settings = read_settings(None, slots=6)
    assert settings.config.engine.slots == 6
    assert settings.origins["engine.slots"].source == "--slots"


def test_a_repeatable_flag_that_was_not_typed_leaves_the_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "file.toml"
    file.write_text('[server]\naddr = ["127.0.0.1:1"]\n')
    assert read_settings(file, addr=()).config.server.listen.addr == ("127.0.0.1:1",)
    assert read_settings(file, addr=("127.0.0.1:2",)).config.server.listen.addr == ("127.0.0.1:2",)


def test_a_value_that_cannot_be_used_names_its_flag() -> None:
    with pytest.raises(ConfigError, match="from --kv-dtype is 'f8', expected one of"):
        read_settings(None, kv_dtype="f8")


@pytest.mark.parametrize("options", [client_options, serving_options])
def test_every_setting_can_be_typed_as_messages_and_variables_call_it(
    options: Callable[[Callable[..., None]], Callable[..., None]],
) -> None:
    @click.command()
    @options
    def command(**_: Any) -> None: ...

    for parameter in command.params:
        if parameter.name != "config_file":
            assert f"--{(parameter.name or '').replace('_', '-')}" in parameter.opts


@pytest.mark.parametrize("timeout_s", [0.0, math.nan, math.inf, 1e300])
def test_a_daemon_is_waited_for_no_longer_than_sockets_can_wait(timeout_s: float) -> None:
    with pytest.raises(ConfigError, match=r"--timeout-s is .*, expected a number above 0 and at most 86400"):
        read_settings(None, timeout_s=timeout_s)


def test_commands_warn_once_of_variables_that_are_no_settings(
    llmd: Llmd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLMD_SLOT", "3")
    done = llmd("config", "show", "--json")
    assert done.code == 0
    assert json.loads(done.out)
    assert done.err == "llmd: warning: LLMD_SLOT is not a setting; the nearest name is LLMD_SLOTS\n"


def test_commands_that_read_settings_twice_warn_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLMD_SLOT", "3")
    with click.Context(click.Command("any")):
        read_settings(None)
        read_settings(None)
    assert capsys.readouterr().err.count("LLMD_SLOT is not a setting") == 1


def test_only_errors_in_files_are_ignored_to_find_a_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file.toml"
    file.write_text("[engine]\nslots = 3\n[client]\ntimeout_s = 0\n")
    assert daemon_settings(file).config.engine.slots == 3
    assert capsys.readouterr().err == (
        f"llmd: warning: client.timeout_s from {file}:4 is 0, expected a number above 0 and at most 86400;"
        " it is ignored; `llmd config check` shows every error\n"
    )
    with pytest.raises(ConfigError, match="does not exist"):
        daemon_settings(tmp_path / "none.toml")
    monkeypatch.setenv("LLMD_SLOTS", "0")
    with pytest.raises(ConfigError, match="LLMD_SLOTS"):
        daemon_settings(file)
