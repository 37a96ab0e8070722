"""Names are completed from folders and caches."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from llmd.cli.completion.names import command_names, device_names, model_names, plugin_names, setting_names
from llmd.cli.main import llmd as root
from tests.serving.model import write_model

Llmd = Callable[..., Any]
CONTEXT = click.Context(root)
NO_PARAMETER = click.Argument(["any"])


def completed(
    names: Callable[..., list[str]], typed: str = "", context: click.Context = CONTEXT
) -> list[str]:
    return names(context, NO_PARAMETER, typed)


def test_models_are_those_of_the_store_and_derived_ones(llmd: Llmd, tmp_path: Path) -> None:
    models = tmp_path / "data" / "llmd" / "models"
    write_model(models / "org" / "tiny")
    (models / ".derived").mkdir()
    (models / ".derived" / "mine.json").write_text("{}")
    assert completed(model_names) == ["guide", "mine", "org/tiny"]
    assert completed(model_names, "or") == ["org/tiny"]


def test_devices_are_those_that_were_found_before(llmd: Llmd) -> None:
    assert completed(device_names) == ["auto"]
    llmd("doctor")
    assert {"auto", "reference"} <= set(completed(device_names))
    assert completed(device_names, "ref") == ["reference"]


def test_settings_have_their_table_if_one_was_typed() -> None:
    assert completed(setting_names, "slo") == ["slots"]
    assert completed(setting_names, "engine.s") == ["engine.slots", "engine.split"]


def test_plugins_and_commands_have_names() -> None:
    assert "openai" in completed(plugin_names, "open")
    assert completed(command_names, "do") == ["doctor"]
    below = click.Context(root)
    below.params["words"] = ("config",)
    assert completed(command_names, "se", below) == ["set"]
    below.params["words"] = ("nothing",)
    assert completed(command_names, "", below) == []


def test_nothing_heavy_is_imported(llmd: Llmd) -> None:
    code = (
        "import sys; from llmd.cli.main import run\n"
        "try: run([])\n"
        "except SystemExit: pass\n"
        "sys.exit('numpy' in sys.modules or 'aiohttp' in sys.modules)"
    )
    for words, number in (
        ("llmd run gu", "2"),
        ("llmd serve --device a", "3"),
        ("llmd ", "1"),
        ("llmd config set s", "3"),
    ):
        environment = {"_LLMD_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": number}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment | environ(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (words, done.stderr)
        assert done.stdout.startswith("plain,")


def environ() -> dict[str, str]:
    import os

    return dict(os.environ)
