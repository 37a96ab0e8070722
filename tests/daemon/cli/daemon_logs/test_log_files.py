from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from llmd.cli.daemon_logs.line_filter import LineFilter
from llmd.cli.daemon_logs.log_files import last_lines, new_lines
from llmd.cli.daemon_logs.options import LogView


def every() -> Callable[[str], bool]:
    return LineFilter(LogView())


def test_the_last_lines_may_be_in_older_files(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    path.write_text("5\n6\n")
    (tmp_path / "daemon.log.1").write_text("3\n4\n")
    (tmp_path / "daemon.log.2").write_text("1\n2\n")
    assert last_lines(path, 1, every) == ["6"]
    assert last_lines(path, 3, every) == ["4", "5", "6"]
    assert last_lines(path, 100, every) == ["1", "2", "3", "4", "5", "6"]
    assert last_lines(path, 0, every) == []


def follow(path: Path, steps: list[Callable[[], object]]) -> Iterator[str]:
    """Do one thing each time that all lines have been read; end after the last."""

    class EndError(Exception):
        pass

    def wait(_seconds: float) -> None:
        if not steps:
            raise EndError
        steps.pop(0)()

    try:
        yield from new_lines(path, wait)
    except EndError:
        return


def add(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_new_lines_are_followed_over_a_rotation_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    path.write_text("before\n")
    old = tmp_path / "daemon.log.1"

    def rotate() -> None:
        add(path, "last of the old file\n")
        path.replace(old)

    lines = follow(
        path,
        [
            lambda: add(path, "one\ntw"),
            lambda: add(path, "o\n"),
            rotate,
            lambda: add(old, "late words of a child\n"),
            lambda: add(path, "of the new file\n"),
        ],
    )
    assert list(lines) == [
        "one",
        "two",
        "last of the old file",
        "late words of a child",
        "of the new file",
    ]
