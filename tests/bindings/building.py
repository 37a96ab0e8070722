"""Builds libllmd and programs that use it, as their makers would."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

ROOT = Path(__file__).parents[2]
BINDINGS = ROOT / "bindings"
SOURCES = BINDINGS / "c"
HERE = Path(__file__).parent
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
Step = dict[str, Any]


class Library(Struct, frozen=True):
    """A built library, and how to compile what uses it."""

    folder: Path
    compiler: str
    flags: tuple[str, ...]

    @property
    def file(self) -> Path:
        return self.folder / "libllmd.so"

    def program(self, source: Path, *more: str, include: Path = SOURCES / "include", name: str = "") -> Path:
        """Compile a program in C."""
        program = self.folder / (name or source.stem)
        found = (f"-I{include}", f"-L{self.folder}", f"-Wl,-rpath,{self.folder}")
        command = (self.compiler, "-std=c99", *STRICT, *self.flags, *found, str(source), *more, "-lllmd")
        checked(*command, "-lpthread", "-o", str(program))
        return program


def build_library(folder: Path, compiler: str = "cc", flags: Sequence[str] = ("-O1",)) -> Library:
    """Run the library's own makefile; any warning is an error."""
    variables = (f"BUILD={folder}", f"CC={compiler}", f"CFLAGS={' '.join((*STRICT, *flags))}")
    checked("make", "--silent", f"--jobs={os.cpu_count()}", f"--directory={SOURCES}", *variables)
    return Library(folder, compiler, tuple(flags))


def checked(*command: str, environment: Mapping[str, str] | None = None, folder: Path = ROOT) -> str:
    """What a program prints that ends with zero and complains about nothing."""
    variables = os.environ | (environment or {})
    done = subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


class Probe(Struct, frozen=True):
    """The test program ``probe``, and what it is run with."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = {}

    def run(self, *calls: str | bytes) -> list[Step]:
        """Make calls, and return what each said."""
        done = subprocess.run(
            (*self.command, *calls),
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stderr, done.stdout)
        return [json.loads(line) for line in done.stdout.split("\n") if line]

    @contextmanager
    def waiting(self, *calls: str) -> Iterator[tuple[subprocess.Popen[str], list[Step]]]:
        """Make calls, then wait until the block ends; yields the process, and what each call said."""
        with subprocess.Popen(
            (*self.command, *calls, "wait"),
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert process.stdout is not None
                steps: list[Step] = []
                while not steps or steps[-1]["call"] != "wait":
                    steps.append(json.loads(process.stdout.readline() or "null"))
                yield process, steps
            finally:
                process.communicate("\n")

    def last(self, *calls: str | bytes) -> Step:
        """The last of several calls; those before it succeed."""
        *before, last = self.run(*calls)
        assert [step for step in before if step["status"] != 0] == []
        return last

    def ask(self, address: str, *calls: str | bytes) -> Step:
        """As `last`, with a new request to the daemon at an address."""
        return self.last("set", "address", address, "connect", "new", *calls)
