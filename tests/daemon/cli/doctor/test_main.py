"""`llmd doctor` checks everything afresh and suggests fixes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from llmd.cli.doctor.check import surroundings
from llmd.cli.doctor.main import TOPICS, checks_of, command
from tests.daemon.cli.doctor.patient import Patient, by_id

Llmd = Callable[..., Any]
DOCTOR = Path(__file__).parents[4] / "daemon" / "src" / "llmd" / "cli" / "doctor"


def test_every_module_with_checks_is_a_topic_and_named_in_the_help() -> None:
    modules = {path.stem for path in DOCTOR.glob("*.py") if "\ndef checks(" in path.read_text()}
    assert modules == set(TOPICS)
    assert command.help is not None
    assert [topic for topic in TOPICS if topic not in command.help] == []


def test_all_topics_are_checked_and_nothing_is_wrong_here(patient: Patient) -> None:
    done = patient.shell("llmd doctor --json")
    checks = by_id(done.stdout)
    assert len(checks) == len(json.loads(done.stdout)["checks"]), "an id is there twice"
    failed = {name: check for name, check in checks.items() if check["status"] == "fail"}
    assert (failed, done.returncode) == ({}, 0)
    assert {
        "python",
        "umask",
        "processor",
        "clock",
        "folder:models",
        "settings",
        "keys",
        "daemon",
        "log",
    } <= set(checks)
    assert {"models", "pulls", "plugin:reference", "devices", "swap", "descriptors"} <= set(checks)
    assert set(checks["python"]) == {"id", "status", "seen", "fix", "mend"}


def test_symbols_stand_next_to_the_words_and_problems_alone_may_be_shown(
    llmd: Llmd, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "✓ ok" in llmd("doctor", "settings").out
    monkeypatch.setenv("LLMD_SLOT", "3")
    shown = llmd("doctor", "settings", "clock", "--problems", "--plain").out.splitlines()
    assert [line.split("\t")[0] for line in shown] == ["CHECK", "settings"]


def test_without_problems_a_sentence_says_so_and_programs_get_an_empty_table(llmd: Llmd) -> None:
    done = llmd("doctor", "settings", "--problems")
    assert (done.code, done.out) == (0, "no problems found\n")
    assert llmd("doctor", "settings", "--problems", "--plain").out.startswith("CHECK\t")
    assert json.loads(llmd("doctor", "settings", "--problems", "--json").out)["checks"] == []


def test_an_unknown_topic_is_refused(llmd: Llmd) -> None:
    assert llmd("doctor", "weather").code == 2


def test_a_check_that_cannot_be_made_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_around: object) -> None:
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr("llmd.cli.doctor.keys.checks", broken)
    (check,) = checks_of("keys", surroundings())
    assert (check.id, check.status) == ("keys", "warn")
    assert "ZeroDivisionError: of all things" in check.seen


def test_it_is_a_command(llmd: Llmd) -> None:
    assert isinstance(command, click.Command)
    assert "TOPIC" in llmd("doctor", "--help").out
