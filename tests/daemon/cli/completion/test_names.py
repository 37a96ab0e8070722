"""Names are completed from folders and caches."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, ShellComplete

from llmd.cli.completion.names import (
    command_names,
    derived_names,
    device_and_plugin_names,
    device_names,
    disabled_names,
    installable_names,
    model_names,
    plugin_names,
    removable_names,
    setting_names,
)
from llmd.cli.group import LazyGroup
from llmd.cli.main import llmd as root
from tests.plugin_sites import Site
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
    assert completed(derived_names) == ["mine"]


def test_every_command_that_takes_a_model_or_a_plugin_completes_its_name() -> None:
    takes = {"model", "models", "model_flag", "tokenizer", "source"}
    completing = {
        f"{path} {parameter.name}": completes(parameter)
        for path, command in commands(root)
        for parameter in command.params
        if parameter.name in takes
        or (
            path.startswith("plugins ") and isinstance(parameter, click.Argument) and path != "plugins search"
        )
    }
    without = {name for name, is_completed in completing.items() if not is_completed}
    assert without == {"plugins new name"}, "a name that no plugin has yet"
    assert {"load model", "service install models", "bench serve model", "plugins install target"} <= set(
        completing
    )


def commands(group: LazyGroup) -> Iterator[tuple[str, click.Command]]:
    """Yield every command of llmd itself below a group, with the words that name it."""
    for name in group.subcommands:
        command = group.get_command(CONTEXT, name)
        assert command is not None
        if isinstance(command, LazyGroup):
            yield from ((f"{name} {path}", below) for path, below in commands(command))
        else:
            yield name, command


def completes(parameter: click.Parameter) -> bool:
    """Whether a parameter has names to complete: those of a function of ours, or a fixed choice."""
    return parameter._custom_shell_complete is not None or isinstance(parameter.type, click.Choice)


def test_a_model_after_its_flag_is_completed(llmd: Llmd) -> None:
    for words in (["run", "-m"], ["load", "--model"], ["bench", "serve", "--model"]):
        done = ShellComplete(root, {}, "llmd", "_LLMD_COMPLETE").get_completions(words, "gu")
        assert [item.value for item in done] == ["guide"], words


def test_devices_are_those_that_were_found_before(llmd: Llmd, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "cache")
    assert completed(device_names) == ["auto"]
    llmd("doctor")
    assert {"auto", "reference"} <= set(completed(device_names))
    assert completed(device_names, "ref") == ["reference"]


def test_settings_have_their_table_if_one_was_typed() -> None:
    assert completed(setting_names, "slo") == ["slots"]
    assert completed(setting_names, "engine.s") == ["engine.slots", "engine.split"]


def test_each_command_for_plugins_completes_those_that_it_takes(llmd: Llmd, site: Site) -> None:
    site.install("twin_one")
    assert completed(plugin_names, "o") == ["ollama", "openai"]
    assert completed(removable_names, "tri") == ["trial-twin-one"]
    assert completed(removable_names, "twin") == ["twin-one"]
    assert completed(removable_names, "openai") == []
    assert completed(disabled_names) == []
    llmd("plugins", "disable", "ollama")
    assert completed(disabled_names) == ["ollama"]
    assert "openai" in completed(device_and_plugin_names, "open")
    assert installable_names(CONTEXT, NO_PARAMETER, "llmd-b") == [
        "llmd-backend-cpu",
        "llmd-backend-cuda[cuda12]",
        "llmd-backend-vulkan",
    ]
    (item,) = installable_names(CONTEXT, NO_PARAMETER, "./llmd-b")
    assert isinstance(item, CompletionItem)
    assert item.type == "file", "a path is completed by the shell"


def test_commands_have_names() -> None:
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
        ("llmd service install -m gu", "4"),
        ("llmd plugins install llmd-b", "3"),
        ("llmd plugins info op", "3"),
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
