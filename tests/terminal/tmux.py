"""A terminal in tmux: keys go in as a person presses them, and the screen is read as a person sees it."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

TMUX = shutil.which("tmux")
COLUMNS, ROWS = 120, 36
LIMIT_S = 120.0
POLL_S = 0.05
# Colours as the program writes them, no line of tmux's own, and Esc is not held back.
SETTINGS = """
set -g default-terminal tmux-256color
set -ga terminal-overrides ",*:RGB"
set -g status off
set -s escape-time 0
"""


class Tmux(Struct, frozen=True):
    """One terminal, with a shell in it."""

    socket: Path

    def command(self, *arguments: str) -> str:
        """Run a command of tmux and return what it prints."""
        assert TMUX is not None
        command = (TMUX, "-S", str(self.socket), *arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return done.stdout

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names for them."""
        self.command("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type a text."""
        self.command("send-keys", "-l", text)

    def shown(self) -> str:
        """Return the lines of the screen."""
        return self.command("capture-pane", "-p")

    def coloured(self) -> str:
        """Return the lines of the screen with their colours, as escape sequences."""
        return self.command("capture-pane", "-e", "-N", "-p")

    def mode(self, name: str) -> str:
        """Return a value of tmux about the terminal, such as ``alternate_on``."""
        return self.command("display-message", "-p", f"#{{{name}}}").strip()

    def wait_for(self, *texts: str) -> str:
        """Return the screen once it shows all these texts."""
        return self.wait_until(lambda shown: all(text in shown for text in texts), f"{texts} are shown")

    def wait_until(self, is_met: Callable[[str], bool], wanted: str) -> str:
        """Return the screen once it is as wanted."""
        deadline = time.monotonic() + LIMIT_S
        while not is_met(shown := self.shown()):
            assert time.monotonic() < deadline, f"not so after {LIMIT_S:.0f} s: {wanted}\n{shown}"
            time.sleep(POLL_S)
        return shown

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        self.command("resize-window", "-x", str(columns), "-y", str(rows))


@contextmanager
def tmux(folder: Path, environment: Mapping[str, str]) -> Iterator[Tmux]:
    """Run a shell in a terminal of a tmux server of its own, which ends with the block."""
    assert TMUX is not None
    settings = folder / "tmux.conf"
    settings.write_text(SETTINGS)
    terminal = Tmux(folder / "tmux.sock")
    size = ("-x", str(COLUMNS), "-y", str(ROWS))
    command = (TMUX, "-S", str(terminal.socket), "-f", str(settings), "new-session", "-d", *size, "sh")
    outer = {name: value for name, value in environment.items() if name not in {"TMUX", "LINES", "COLUMNS"}}
    subprocess.run(command, check=True, env=outer | {"COLORTERM": "truecolor"})
    try:
        yield terminal
    finally:
        terminal.command("kill-server")
