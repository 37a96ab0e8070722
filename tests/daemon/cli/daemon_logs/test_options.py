from __future__ import annotations

import click
from click.testing import CliRunner

from llmd.cli.daemon_logs.options import LogView, log_options


def view_of(*arguments: str) -> LogView:
    seen: list[LogView] = []

    @click.command()
    @log_options
    def command(view: LogView) -> None:
        seen.append(view)

    result = CliRunner().invoke(command, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return seen[0]


def test_options_are_one_view() -> None:
    assert view_of() == LogView(lines=100, follow=False, level=None, request=None)
    named = view_of("-f", "-n", "3", "--level", "warning", "--request", "req_1")
    assert named == LogView(3, follow=True, level="warning", request="req_1")
