"""`llmd config unset` removes one setting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Llmd = Callable[..., Any]


def test_a_setting_goes_and_its_neighbours_stay(llmd: Llmd, file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("# mine\n[engine]\nslots = 3\nmax_ctx = 9 # nine\n[models.guide]\nslots = 4\n")
    assert llmd("config", "unset", "slots").code == 0
    assert llmd("config", "unset", "slots", "--model", "guide").code == 0
    assert file.read_text() == "# mine\n[engine]\nmax_ctx = 9 # nine\n[models.guide]\n"
    assert "is no longer set" in llmd("config", "unset", "engine.max_ctx").out


def test_names_that_llmd_does_not_know_can_go_too(llmd: Llmd, file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("[engine]\nslot = 3\n[models.guide]\nslot = 3\n")
    assert llmd("config", "unset", "engine.slot").code == 2  # the other error stays
    file.write_text("[engine]\nslot = 3\n")
    assert llmd("config", "unset", "engine.slot").code == 0
    file.write_text("[models.guide]\nslot = 3\n")
    assert llmd("config", "unset", "slot", "-m", "guide").code == 0
    assert file.read_text() == "[models.guide]\n"


def test_what_is_not_set_cannot_go(llmd: Llmd) -> None:
    done = llmd("config", "unset", "slots")
    assert (done.code, "does not set engine.slots" in done.err) == (3, True)
    assert "the nearest name is slots" in llmd("config", "unset", "slotz").err
