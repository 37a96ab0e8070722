from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from llmd.cli.log_file import NUM_OLD, JournalFormatter, RotatingHandler
from llmd.cli.logs import EventFormatter

MESSAGE = "event"


@contextmanager
def stderr_in(path: Path) -> Iterator[None]:
    """Connect standard error to the end of a file, as `llmd serve --detach` does."""
    kept = os.dup(2)
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(opened, 2)
    os.close(opened)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def record(text: str, level: int = logging.INFO, **fields: object) -> logging.LogRecord:
    found = logging.LogRecord("llmd", level, __file__, 1, text, (), None)
    vars(found).update(fields)
    return found


def handler(path: Path, max_bytes: int) -> RotatingHandler:
    made = RotatingHandler(path, max_bytes)
    made.setFormatter(logging.Formatter("%(message)s"))
    made.setStream(open(2, "w", closefd=False, buffering=1))  # noqa: SIM115 - pytest has replaced sys.stderr
    return made


def test_a_full_file_is_replaced_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    with stderr_in(path):
        log = handler(path, 10)
        for number in range(8):
            log.emit(record(f"event {number} which is long"))
        log.emit(record("short"))
    kept = sorted(tmp_path.iterdir())
    assert [one.name for one in kept] == ["daemon.log", *(f"daemon.log.{n}" for n in range(1, NUM_OLD + 1))]
    assert [one.read_text() for one in kept] == [
        "short\n",
        *(f"event {n} which is long\n" for n in range(7, 2, -1)),
    ]


def test_what_others_write_to_the_descriptor_is_in_the_file_and_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    with stderr_in(path):
        log = handler(path, 10)
        inherited = os.dup(2)  # as a child process has it
        log.emit(record("a long event"))
        os.write(inherited, b"late words of a child\n")
        os.close(inherited)
        os.write(2, b"words of a library\n")
    assert (tmp_path / "daemon.log.1").read_text() == "a long event\nlate words of a child\n"
    assert path.read_text() == "words of a library\n"


def test_two_daemons_that_share_the_file_rotate_it_once(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    with stderr_in(path):
        first, other = handler(path, 10), os.dup(2)
        second = RotatingHandler(path, 10, descriptor=other)
        second.setFormatter(logging.Formatter("%(message)s"))
        second.setStream(open(other, "w", closefd=False, buffering=1))  # noqa: SIM115 - as above
        first.emit(record("a long event"))
        second.emit(record("of the second"))
        second.emit(record("s"))
        os.close(other)
    assert (tmp_path / "daemon.log.1").read_text() == "a long event\nof the second\n"
    assert path.read_text() == "s\n"
    assert not (tmp_path / "daemon.log.2").exists()


@pytest.mark.parametrize(
    ("level", "priority"),
    [(logging.CRITICAL, 3), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6), (logging.DEBUG, 7)],
)
def test_lines_of_the_journal_have_their_priority_and_no_time(level: int, priority: int) -> None:
    formatter = JournalFormatter(EventFormatter(with_time=False))
    text = formatter.format(record("engine_died", level, model="tiny", last_lines="one\ntwo"))
    name = logging.getLevelName(level).lower()
    first, *below = text.splitlines()
    assert first == f"<{priority}>{name} engine_died model=tiny"
    assert [line[:3] for line in below] == [f"<{priority}>"] * 3
