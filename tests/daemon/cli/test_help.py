"""``llmd help`` shows what ``--help`` shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Llmd = Callable[..., Any]


@pytest.mark.parametrize("words", [(), ("ls",), ("plugins", "install")])
def test_help_of_a_command_is_that_of_its_flag(llmd: Llmd, words: tuple[str, ...]) -> None:
    done = llmd("help", *words)
    assert (done.code, done.out) == (0, llmd(*words, "--help").out)
    assert done.out.startswith(" ".join(["Usage: llmd", *words]))


def test_help_of_what_is_no_command_is_an_error(llmd: Llmd) -> None:
    assert "did you mean `llmd doctor`?" in llmd("help", "docter").err
    assert "`llmd ps` has no subcommands" in llmd("help", "ps", "x").err
