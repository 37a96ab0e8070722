from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llmd.cli.examples import examples

Llmd = Callable[..., Any]


def test_examples_stand_under_the_help_line_by_line(llmd: Llmd) -> None:
    assert examples("llmd a", "llmd b").splitlines()[1:] == ["Examples:", "  llmd a", "  llmd b"]
    assert llmd("stop", "--help").out.endswith("  Examples:\n    llmd stop guide\n    llmd stop --daemon\n")
