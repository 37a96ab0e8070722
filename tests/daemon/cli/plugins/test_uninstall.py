"""What `llmd plugins uninstall` accepts; tests/packaging/test_plugin_installation.py really uninstalls."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import click
import pytest

from llmd.api.errors import ConfigError
from llmd.cli.composition import build_choices
from llmd.cli.plugins.uninstall import confirm_if_own, distribution_of
from llmd.host.names import CORE_DISTRIBUTION, PluginName

Llmd = Callable[..., Any]

PLUGINS = (
    PluginName("cpu", "llmd.a", CORE_DISTRIBUTION, "1"),
    PluginName("one", "b", "Made_One", "1"),
    PluginName("shared", "c", "made-one", "1"),
    PluginName("shared", "d", "made-two", "1"),
)


def test_a_plugin_or_its_distribution_may_be_named() -> None:
    assert distribution_of("one", PLUGINS) == "Made_One"
    assert distribution_of("made-two", PLUGINS) == "made-two"
    assert distribution_of("nothing", PLUGINS) is None


def test_what_is_part_of_llmd_stays() -> None:
    with pytest.raises(ConfigError, match="cpu is part of llmd") as caught:
        distribution_of("cpu", PLUGINS)
    assert "llmd plugins disable cpu" in caught.value.hint


def test_a_name_of_several_distributions_is_not_enough() -> None:
    with pytest.raises(ConfigError, match="made-one, made-two"):
        distribution_of("shared", PLUGINS)


def test_an_unknown_name_ends_with_three(llmd: Llmd) -> None:
    done = llmd("plugins", "uninstall", "made-nothing")
    assert (done.code, "there is no plugin 'made-nothing'" in done.err) == (3, True)


def test_what_is_no_plugin_is_not_uninstalled(llmd: Llmd) -> None:
    done = llmd("plugins", "uninstall", "pytest")
    assert (done.code, "there is no plugin 'pytest'" in done.err) == (3, True)
    assert metadata.version("pytest")


def test_a_missing_plugin_is_forgotten(llmd: Llmd) -> None:
    build_choices().add_installed(Path(sys.prefix), "made-gone", "made-gone")
    document = json.loads(llmd("plugins", "uninstall", "made-gone", "--json").out)
    assert document["changes"] == []
    assert "no longer expects it" in document["notes"][0]
    assert build_choices().installed_in(Path(sys.prefix)) == {}


def test_a_part_of_llmd_is_not_removed_without_yes() -> None:
    with pytest.raises(ConfigError, match="llmd-backend-cpu is a part of llmd") as caught:
        confirm_if_own("LLMD_backend_cpu", sure=False, may_ask=True)  # these tests have no terminal
    assert "`llmd plugins disable cpu` leaves it installed" in caught.value.hint
    assert "--yes removes it" in caught.value.hint
    assert "installs" in confirm_if_own("llmd-backend-cpu", sure=True, may_ask=False)
    assert confirm_if_own("made-one", sure=False, may_ask=False) == ""


def test_on_a_terminal_it_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = io.StringIO("n\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    with pytest.raises(click.Abort):
        confirm_if_own("llmd-tui", sure=False, may_ask=True)
    assert "`llmd plugins disable tui`" in capsys.readouterr().err
