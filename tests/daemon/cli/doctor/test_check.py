from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from llmd.cli.doctor.check import Check, quoted, surroundings, worst

OK = Check("a", "ok", "fine")


def test_wrong_settings_leave_the_others(tmp_path: Path) -> None:
    environ = {
        "XDG_CONFIG_HOME": str(tmp_path),
        "LLMD_SLOTS": "x",
        "LLMD_THREADS": "2",
        "LLMD_TEST_ROOT": "/other",
    }
    around = surroundings(environ)
    assert (around.settings.config.engine.threads, str(around.root)) == (2, "/other")
    assert [error.message.split()[0] for error in around.errors] == ["engine.slots"]
    assert around.now > 1.7e9


def test_checks_replace_the_one_that_says_that_there_are_none() -> None:
    def none() -> Iterator[Check]:
        yield from ()

    bad = Check("b", "warn", "bad")
    assert list(worst(none(), OK)) == [OK]
    assert list(worst(iter([bad]), OK)) == [bad]


def test_paths_are_quoted_for_a_shell() -> None:
    assert quoted(Path("/a b/c")) == "'/a b/c'"
