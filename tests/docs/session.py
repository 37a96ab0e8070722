"""Types the blocks of a page into one shell, as a user of a new machine, with the real daemon.

Three things differ: ports are replaced by free ones (`Reader.ports`), since tests run at the same time and a
daemon of the developer may run; standard input is not a terminal; and no spare engine takes processor time.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from tests.docs.blocks import Block, Command, blocks, commands, difference

LIMIT_S = 80
PORTS = ("8642", "8643", "11434")
PROGRESS = re.compile(r"^\S+: [\d.]+ (?:[KMG]i)?B of [\d.]+ (?:[KMG]i)?B\n|^measuring \w+ …\n", re.MULTILINE)
"""Lines that a terminal overwrites."""
BUSY = re.compile(r"^warning: \S+: (?:throttled|other programs use).*\n?", re.MULTILINE)
"""What `llmd ps` warns of while other tests use the processors."""
ERROR = "llmd: "
"""How an error begins. A command for which a page shows one must fail; every other one must not."""
RUN = ("console", "sh", "python")
END = "\x1e"


class Reader(Struct, frozen=True):
    """Someone who follows a page in a home folder. ``ports`` maps the ports of pages to free ones."""

    home: Path
    environment: dict[str, str]
    ports: Mapping[str, str]

    def follow(self, page: str, left_out: Collection[str] = ()) -> list[str]:
        """Do what a page says; return what went wrong. ``left_out`` is not tried (`can_be_left_out`).

        Raises:
            AssertionError: a block is neither a command nor saved in a file.
        """
        wanted = [step for block in blocks(page) for step in _steps(block, left_out)]
        script = self.home / "page.sh"
        script.write_text(self._with_own_ports("\n".join(_checked(step, n) for n, step in enumerate(wanted))))
        output = self.home / "page.out"
        with output.open("w") as file, suppress(subprocess.TimeoutExpired):
            subprocess.run(
                ["bash", script],
                env=self.environment,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                check=False,
                timeout=LIMIT_S,
            )
        parts = self._with_pages_ports(output.read_text(errors="replace")).split(END)
        return list(_faults(wanted, parts))

    def _with_own_ports(self, text: str) -> str:
        for shown, own in self.ports.items():
            text = re.sub(rf"\b{shown}\b", own, text)
        return text

    def _with_pages_ports(self, text: str) -> str:
        for shown, own in self.ports.items():
            text = text.replace(own, shown)
        return text


def can_be_left_out(page: str) -> set[str]:
    """Return what can be left out of a page: its commands, and the first lines of its other blocks."""
    found = blocks(page)
    typed = {command.text for block in found if block.language == "console" for command in commands(block)}
    return typed | {_first_line(block) for block in found if block.language != "console"}


def _steps(block: Block, left_out: Collection[str]) -> list[Command]:
    if block.language == "console":
        return [command for command in commands(block) if command.text not in left_out]
    if _first_line(block) in left_out:
        return []
    if block.file:
        _check_syntax(block)
        return [Command(_saved(block.file, block.text), block.line)]
    assert block.language in RUN, f"the block in line {block.line} is neither run, nor saved, nor left out"
    if block.language == "python":
        return [Command(f"python - <<'END_OF_BLOCK'\n{block.text}END_OF_BLOCK", block.line)]
    return [Command(block.text.rstrip("\n"), block.line)]


def _first_line(block: Block) -> str:
    return block.text.partition("\n")[0]


def _check_syntax(block: Block) -> None:
    if block.language == "json":
        json.loads(block.text)
    if block.language == "toml":
        tomllib.loads(block.text)


def _saved(file: str, text: str) -> str:
    folder = file.rpartition("/")[0] or "."
    return f"mkdir -p {folder} && cat > {file} <<'END_OF_BLOCK'\n{text}END_OF_BLOCK"


def _checked(step: Command, number: int) -> str:
    """Return the lines of the script for a step: its output ends with a mark, its status and its number."""
    typed = "\n".join(step.typed)
    text = f"{step.text} <<'END_OF_INPUT'\n{typed}\nEND_OF_INPUT" if typed else step.text
    fails = any(line.startswith(ERROR) for line in step.shown)
    wanted = "[ $status -ne 0 ]" if fails else "[ $status -eq 0 ]"
    mark = f"printf '\\036%d %d\\036' {number} $status"
    return f"{text}\nstatus=$?; {mark}; {wanted} || exit 1"


def _faults(wanted: list[Command], parts: list[str]) -> Iterator[str]:
    outputs = dict(zip(range(len(wanted)), parts[::2], strict=False))
    ends = {int(n): int(status) for n, _, status in (mark.partition(" ") for mark in parts[1::2])}
    for number, step in enumerate(wanted):
        output = BUSY.sub("", PROGRESS.sub("", outputs.get(number, "")))
        fails = any(line.startswith(ERROR) for line in step.shown)
        if number not in ends or bool(ends[number]) != fails:
            yield f"line {step.line}: {step.text}\nended with {ends.get(number)}:\n{output}"
            return
        if step.shown and (found := difference(step.shown, output)):
            yield f"line {step.line}: {step.text}\n{found}"


@contextmanager
def reader(home: Path, cache: Path) -> Iterator[Reader]:
    """A user without settings and models, who has built llmd in ``~/llmd``. The user's daemon ends with it.

    ``cache`` has the results of probes.
    """
    programs = home / "llmd" / ".venv" / "bin"
    programs.mkdir(parents=True)
    (home / "run").mkdir()
    _program(programs / "llmd", f"{shlex.quote(sys.executable)} -m llmd.cli.main")
    _program(programs / "python", shlex.quote(sys.executable))
    own = {name: value for name, value in os.environ.items() if not name.startswith(("LLMD_", "XDG_"))}
    ports = dict(zip(PORTS, _free_ports(len(PORTS)), strict=True))
    environment = own | {
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home / "run"),
        "XDG_CACHE_HOME": str(cache),
        "LLMD_SPARE_ENGINE": "false",
        "LLMD_ADDR": f"127.0.0.1:{ports['8642']},unix:{home}/run/llmd/llmd.sock",
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "no_proxy": "127.0.0.1,localhost",
    }
    found = Reader(home, environment, ports)
    try:
        yield found
    finally:
        subprocess.run(
            [programs / "llmd", "stop", "--daemon"], env=environment, capture_output=True, check=False
        )


def _program(path: Path, command: str) -> None:
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    path.chmod(0o755)


def _free_ports(count: int) -> list[str]:
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [str(one.getsockname()[1]) for one in taken]
    for one in taken:
        one.close()
    return ports
