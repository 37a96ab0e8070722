"""A line on the terminal that shows loading progress until the answer starts."""

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
    """Yield the answers; until the first arrives, show loading progress if stderr is a terminal."""
    if not has_changing_lines(sys.stderr):
        yield from answers
        return
    with closing(answers), LoadingProgress(client, sys.stderr) as progress:  # type: ignore[type-var]
        for answer in answers:
            progress.hide()
            yield answer


class LoadingProgress:
    """A line that shows what the daemon is loading.

    `hide` removes it; the last status request to the daemon may still be in flight then.
    """

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
        self._watcher.join(LEAVE_LIMIT_S)  # a hung daemon must not delay a user who presses Ctrl-C

    def hide(self) -> None:
        """Remove the line and never show it again."""
        with self._writing:
            self._hidden.set()
            if self._has_line:
                replace_line(self._stream, "")
                self._has_line = False

    def _watch(self) -> None:
        """Poll the daemon until `hide` is called. Most answers start before the first poll."""
        while not self._hidden.wait(self._every_s):
            try:
                line = loading_line(self._client.ps())
            except LlmdError:  # not permitted, or the daemon is gone: the answer reports that
                return
            with self._writing:
                if not self._hidden.is_set() and (line or self._has_line):
                    replace_line(self._stream, line)
                    self._has_line = bool(line)


def loading_line(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return which models are loading and how far, from rows of `Client.ps`; empty if none is loading."""
    return ", ".join(
        f"{LOADING} {row['name']}{state(row).removeprefix(LOADING)}"
        for row in rows
        if row["status"] == LOADING
    )
