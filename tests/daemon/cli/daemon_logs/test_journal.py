from __future__ import annotations

from llmd.cli.daemon_logs.journal import journal_command
from llmd.cli.daemon_logs.options import LogView
from llmd.config.log_place import LogPlace

COMMON = ["journalctl", "--quiet", "--no-pager", "--output=short-iso"]


def test_the_journal_of_the_unit_is_shown() -> None:
    user = LogPlace("journal", unit="llmd.service", is_user_unit=True)
    system = LogPlace("journal", unit="llmd.service")
    assert journal_command(user, LogView()) == [*COMMON, "--lines=100", "--user-unit=llmd.service"]
    view = LogView(5, follow=True, level="error", request="a.b")
    assert journal_command(system, view) == [
        *COMMON,
        "--lines=5",
        "--unit=llmd.service",
        "--priority=err",
        r"--grep=request_id\W{1,3}a\.b\b",
        "--follow",
    ]
    assert "--priority=warning" in journal_command(system, LogView(level="warning"))
