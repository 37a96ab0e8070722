"""The examples of the pages on extending llmd.

Some pages quote a plugin in examples/; others change a copy of the daemon's sources.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from llmd.cli.main import llmd

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "daemon" / "src" / "llmd"
PATH = re.compile(r"`([a-z_0-9]+(?:/[a-z_0-9.-]+)+(?:\.[a-z]+|/))`")
"""A file or folder in code. Capitals mark placeholders."""
BASES = (ROOT, PACKAGE)


def page(name: str) -> str:
    """Return the text of a page in docs/."""
    return (ROOT / "docs" / name).read_text()


def quotations(text: str) -> list[tuple[str, str]]:
    """Return path and lines of each quotation: a block of code whose first line is ``# PATH``."""
    return re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def tree(text: str) -> tuple[Path, set[str]]:
    """Return the folder of the example whose files a page lists, and the files."""
    (block,) = re.findall(r"^```\n(examples/.*?)^```$", text, re.MULTILINE | re.DOTALL)
    top, *lines = block.splitlines()
    files, folder = set[str](), ""
    for line in lines:
        name = line.split()[0]
        if name.endswith("/"):
            folder = name
        else:
            files.add(f"{folder}{name}" if line.startswith("    ") else name)
    return ROOT / top, files


def unknown_commands(text: str) -> list[str]:
    """Return the commands of llmd that a page names and that do not exist."""
    lines = "\n".join(re.findall(r"^\$ .*$|`llmd [^`]*`", text, re.MULTILINE))
    named = sorted(set(re.findall(r"llmd ((?:[a-z]+ )*[a-z]+)", lines)))
    assert named
    return [command for command in named if not _exists(command)]


def _exists(command: str) -> bool:
    found: click.Command | None = llmd
    for word in command.split():
        if isinstance(found, click.Group):  # the words after a command are its arguments
            found = found.get_command(click.Context(found), word)
    return found is not None and not isinstance(found, click.Group)


def changes(text: str) -> list[tuple[str, str]]:
    """Return path and lines of each change: a block of code, ``diff`` after the line ``+++ PATH``."""
    return re.findall(r"^```diff\n\+\+\+ (\S+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def changed(text: str, change: str) -> str:
    """Return the text after a change. The kept and removed lines of each hunk must occur exactly once."""
    for hunk in change.split("@@\n"):
        lines = hunk.splitlines()
        old = "".join(f"{line[1:]}\n" for line in lines if line[:1] in (" ", "-"))
        new = "".join(f"{line[1:]}\n" for line in lines if line[:1] in (" ", "+"))
        assert f"\n{text}".count(f"\n{old}") == 1, f"not exactly once:\n{old}"
        text = f"\n{text}".replace(f"\n{old}", f"\n{new}")[1:]
    return text


def copied_sources(folder: Path, wanted: Sequence[tuple[str, str]], added: Mapping[str, str]) -> Path:
    """Copy the daemon's package below ``folder``, with changes and with files that are added."""
    shutil.copytree(PACKAGE, folder / "llmd", ignore=shutil.ignore_patterns("__pycache__", "guide"))
    for path, change in wanted:
        file = folder / "llmd" / path
        file.write_text(changed(file.read_text(), change))
    for path, text in added.items():
        (folder / "llmd" / path).write_text(text)
    return folder


def run(code: str, sources: Path) -> Any:
    """Run code with the copied sources; return what it prints, as JSON."""
    path = os.pathsep.join([str(sources), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=sources,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def missing_paths(text: str) -> Iterator[str]:
    """Yield the paths of a page that exist neither in the workspace nor in the daemon's package."""
    for path in PATH.findall(text):
        if not any((base / path).exists() for base in BASES):
            yield path
