"""Commands for this machine say so if the daemon is on another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from llmd.cli.this_machine import LOCAL

Llmd = Callable[..., Any]
ARGUMENTS = {
    "cp": ["guide", "no name"],
    "keys add": ["laptop"],
    "keys rm": ["laptop"],
    "plan": ["nobody"],
    "rm": ["nobody"],
    "show": ["guide"],
}


@pytest.mark.parametrize("command", sorted(LOCAL))
def test_a_daemon_elsewhere_is_not_the_one_that_is_shown(
    llmd: Llmd, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    words = [*command.split(), *ARGUMENTS.get(command, [])]
    assert "of this machine, not of" not in llmd(*words).err
    monkeypatch.setenv("LLMD_HOST", "https://box.example:8643")
    note = " of this machine, not of https://box.example:8643 (LLMD_HOST)\n"
    assert note in llmd(*words).err
    refused = llmd(*command.split(), "--host", "box")
    assert refused.code == 2
    assert f"`llmd {command}` works on this machine" in refused.err


@pytest.mark.parametrize("host", ["", "127.0.0.1:8642", "unix:/run/llmd.sock"])
def test_a_daemon_of_this_machine_needs_no_note(
    llmd: Llmd, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("LLMD_HOST", host)
    done = llmd("list")
    assert (done.code, done.err) == (0, "")
