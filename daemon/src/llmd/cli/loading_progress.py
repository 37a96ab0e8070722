"""Shows on a terminal how far a model is loaded, while its answer is waited for."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import IO, TYPE_CHECKING, Any, Self

from llmd.api.errors import LlmdError
from llmd.cli.ps import state
from llmd.cli.terminal import has_changing_lines, replace_line

if TYPE_CHECKING:
    from llmd.client import Answer, Client

ASK_EVERY_S = 0.5
LEAVE_LIMIT_S = 2.0
LOADING = "loading"


def with_loading_progress(client: Client, answers: Iterator[Answer]) -> Iterator[Answer]:
    """The same answers. Until the first comes, standard error shows what the daemon loads, where it is a terminal."""
    if not has_changing_lines(sys.stderr):
        yield from answers
        return
    with closing(answers), LoadingProgress(client, sys.stderr) as progress:  # type: ignore[type-var]
        for answer in answers:
            progress.hide()
            yield answer


class LoadingProgress:
    """A line that says what the daemon loads. It is gone after `hide`; a question to the daemon may then still be open."""

    def __init__(self, client: Client, stream: IO[str], every_s: float = ASK_EVERY_S) -> None:
        self._client = client
        self._stream = stream
        self._every_s = every_s
        self._hidden = threading.Event()
        self._writing = threading.Lock()
        self._has_line = False
        self._watcher = threading.Thread(target=self._watch, name="loading progress", daemon=True)

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.hide()
        self._watcher.join(LEAVE_LIMIT_S)  # a daemon that hangs must not hold a user who presses Ctrl-C

    def hide(self) -> None:
        """Remove the line, for good."""
        with self._writing:
            self._hidden.set()
            if self._has_line:
                replace_line(self._stream, "")
                self._has_line = False

    def _watch(self) -> None:
        """Most answers begin before the first look."""
        while not self._hidden.wait(self._every_s):
            try:
                line = loading_line(self._client.ps())
            except LlmdError:  # it may not be asked, or is gone, which the answer will say
                return
            with self._writing:
                if not self._hidden.is_set() and (line or self._has_line):
                    replace_line(self._stream, line)
                    self._has_line = bool(line)


def loading_line(rows: Sequence[Mapping[str, Any]]) -> str:
    """What is loaded and how far that is, as rows of `Client.ps` say; empty where nothing is loaded."""
    return ", ".join(
        f"{LOADING} {row['name']}{state(row).removeprefix(LOADING)}"
        for row in rows
        if row["status"] == LOADING
    )
