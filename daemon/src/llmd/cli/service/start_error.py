"""Finds out why the daemon of a service did not start: its own error is in the journal."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.errors import LlmdError
from llmd.cli.service.system_command import run

PREFIX = "llmd: "
"""What the errors of commands begin with."""


def start_error(journal: Sequence[str], since_s: float) -> LlmdError | None:
    """Return the last error in a journal since ``since_s``, in seconds since 1970; None if there is none.

    ``journal`` is the command that shows the journal.
    """
    try:
        text = run((*journal, "--quiet", "--no-pager", "--output=cat", f"--since=@{int(since_s)}"))
    except LlmdError:  # journalctl is missing, or may not read this journal
        return None
    return last_error(text.splitlines())


def last_error(lines: Sequence[str]) -> LlmdError | None:
    """Return the last error of a log: a line with what happened, and indented ones with what to do."""
    starts = [number for number, line in enumerate(lines) if line.startswith(PREFIX)]
    if not starts:
        return None
    first, *below = lines[starts[-1] :]
    hint = []
    for line in below:
        if not line.startswith(" "):
            break
        hint.append(line.strip())
    return LlmdError(f"the daemon did not start: {first.removeprefix(PREFIX)}", hint=" ".join(hint))
