"""The completion scripts work in real shells."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving.home import Home
from tests.serving.terminal import terminal

BASH = """
source <(llmd completion bash)
COMP_WORDS=({words})
COMP_CWORD={last}
_llmd_completion llmd
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def environment(home: Home, tmp_path: Path) -> dict[str, str]:
    """The home of a user who has ``llmd`` on the path."""
    program = tmp_path / "bin" / "llmd"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m llmd.cli.main "$@"\n')
    program.chmod(0o755)
    return home.environment | {"PATH": f"{program.parent}:{home.environment['PATH']}"}


def in_bash(environment: dict[str, str], *words: str) -> list[str]:
    """Return what bash completes after ``llmd`` and these words, of which the last one is being typed."""
    quoted = " ".join(f"'{word}'" for word in ("llmd", *words))
    script = BASH.format(words=quoted, last=len(words))
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("servi",), ["service"]),
        (("config", "se"), ["set"]),
        (("run", "ti"), ["tiny"]),
        (("config", "set", "max_c"), ["max_connections", "max_ctx"]),
        (("serve", "tiny", "--max-c"), ["--max-ctx"]),
        (("completion", "b"), ["bash"]),
        (("nothing", "b"), []),
    ],
)
def test_bash_completes_commands_options_and_names(
    environment: dict[str, str], words: tuple[str, ...], found: list[str]
) -> None:
    assert in_bash(environment, *words) == found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_printed(home: Home, shell: str) -> None:
    done = home.llmd("completion", shell)
    assert (done.returncode, f"_LLMD_COMPLETE={shell}_complete" in done.stdout) == (0, True)


@pytest.mark.exhaustive
def test_zsh_completes_on_a_terminal(environment: dict[str, str]) -> None:
    assert shutil.which("zsh"), "see tools/system_packages.py"
    with terminal(["zsh", "-f", "-i"], environment | {"PS1": "ready> "}, term="xterm") as screen:
        screen.wait_for("ready>")
        screen.type("autoload -U compinit; compinit -u; source <(llmd completion zsh); echo so'urced'\n")
        screen.wait_for("sourced")
        screen.type("llmd run ti\t")
        screen.wait_for("tiny", after=len(screen.shown))


@pytest.mark.exhaustive
def test_fish_completes(environment: dict[str, str]) -> None:
    assert shutil.which("fish"), "see tools/system_packages.py"
    script = "llmd completion fish | source; complete -C 'llmd run ti'; complete -C 'llmd config se'"
    done = subprocess.run(
        ["fish", "-N", "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["tiny", "set"]
