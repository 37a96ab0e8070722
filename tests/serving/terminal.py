"""A program on a pseudo-terminal, with input as a user would type it."""

from __future__ import annotations

import io
import os
import pty
import select
import signal
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

LIMIT_S = 20.0
ROWS = 24


class Terminal(Struct):
    """What was shown so far is ``shown``."""

    process: subprocess.Popen[bytes]
    master: int
    shown: str = ""

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def resize(self, columns: int) -> None:
        """Give the terminal another width."""
        termios.tcsetwinsize(self.master, (ROWS, columns))

    def interrupt(self) -> None:
        """Ctrl-C, once the program waits: one that comes just before readline
        waits is seen with the next key alone.
        """
        deadline = time.monotonic() + LIMIT_S
        while _state(self.process.pid) != "S":
            assert time.monotonic() < deadline, "the program never waits"
        self.process.send_signal(signal.SIGINT)

    def wait_for(self, text: str, *, after: int = 0) -> None:
        """Read until ``text`` is shown, ``after`` that many characters."""
        deadline = time.monotonic() + LIMIT_S
        while text not in self.shown[after:]:
            assert time.monotonic() < deadline, f"{text!r} was not shown in {self.shown!r}"
            readable, _, _ = select.select([self.master], [], [], 0.1)
            if readable:
                self.shown += os.read(self.master, 4096).decode(errors="replace")

    def end(self) -> int:
        """Wait until the program ends; returns its exit status."""
        while self._more():
            pass
        return self.process.wait(LIMIT_S)

    def _more(self) -> bool:
        try:
            text = os.read(self.master, 4096)
        except OSError:  # the program has closed its side
            return False
        self.shown += text.decode(errors="replace")
        return bool(text)


class Screen(io.StringIO):
    """A stream of this process that takes itself for one on a terminal."""

    def isatty(self) -> bool:
        return True


def _state(pid: int) -> str:
    """R: it runs; S: it sleeps."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@contextmanager
def terminal(
    command: Sequence[str], environment: Mapping[str, str], *, term: str = "dumb", columns: int = 80
) -> Iterator[Terminal]:
    """Run a program with all three streams on a terminal of that kind and width."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (ROWS, columns))
    # readline sets these for the processes that pytest starts, and they would hide the size of this terminal.
    inherited = {name: value for name, value in environment.items() if name not in {"LINES", "COLUMNS"}}
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env={**inherited, "TERM": term}
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.wait()
        os.close(master)
