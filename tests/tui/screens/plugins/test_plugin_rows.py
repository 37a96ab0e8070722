from __future__ import annotations

from typing import Any

import pytest

from llmd_tui.screens.plugins.plugin_rows import (
    COLUMNS,
    commands,
    key_of,
    provided,
    row_of,
    state_words,
    summary,
)


def plugin(**changes: Any) -> dict[str, Any]:
    return {
        "name": "cuda",
        "distribution": "llmd-backend-cuda",
        "version": "0.1.0",
        "module": "llmd_backend_cuda",
        "phase": "probe",
        "state": "ok",
        "reason": "",
        "fix": "",
        "provides": {"backend": ["cuda"], "dialect": []},
        **changes,
    }


def test_a_row_has_a_cell_and_a_sort_key_for_each_column() -> None:
    row = row_of(plugin())
    assert row.cells == ("cuda", "● ok", "backend cuda", "0.1.0", "llmd-backend-cuda", "-")
    assert len(row.order) == len(COLUMNS)
    assert row.key == key_of(plugin()) == "llmd-backend-cuda/cuda"


def test_times_are_shown_if_the_daemon_tells_them() -> None:
    timed = plugin(import_ms=200.0, probe_ms=1300.0)
    assert row_of(timed).cells[-1] == "1.5 s"
    assert dict(summary(timed))["Time"] == "import 200 ms, probe 1.3 s"
    assert dict(summary(plugin()))["Time"] == ""


@pytest.mark.parametrize(
    ("state", "reason", "words"),
    [
        ("ok", "", "● ok"),
        ("failed", "no\x1b driver", "✗ failed: no driver"),
        ("disabled", "you disabled it", "– disabled: you disabled it"),
        ("missing", "an upgrade removed it", "✗ missing: an upgrade removed it"),
        ("unknown", "", "○ not loaded"),
        ("odd", "", "? odd"),
    ],
)
def test_states_have_a_symbol_and_the_reason(state: str, reason: str, words: str) -> None:
    assert state_words(plugin(state=state, reason=reason)) == words


def test_plugins_that_need_a_person_come_first() -> None:
    states = ["ok", "unknown", "disabled", "failed", "missing"]
    ordered = sorted(states, key=lambda state: row_of(plugin(state=state)).order[1])
    assert ordered == ["failed", "missing", "disabled", "unknown", "ok"]


def test_what_a_plugin_provides_is_told_by_kind() -> None:
    assert (
        provided(plugin(provides={"backend": ["a", "b"], "command": ["tui"]})) == "backend a, b; command tui"
    )
    assert provided(plugin(provides={})) == ""


def test_details_say_what_failed_when_and_what_to_do() -> None:
    failed = dict(summary(plugin(state="failed", reason="no driver", fix="install it")))
    assert (failed["Failed"], failed["Fix"]) == ("no driver", "install it")
    assert failed["Reached"] == "it was imported and its devices were probed"
    assert failed["From"] == "llmd-backend-cuda 0.1.0, module llmd_backend_cuda"
    assert dict(summary(plugin(state="failed")))["Failed"] == "it gives no reason"


def test_commands_begin_with_the_likely_one() -> None:
    assert commands(plugin()) == [
        "llmd plugins disable cuda",
        "llmd plugins enable cuda",
        "llmd plugins uninstall llmd-backend-cuda",
        "llmd plugins install --upgrade llmd-backend-cuda",
    ]
    assert commands(plugin(state="disabled"))[0] == "llmd plugins enable cuda"
    missing = plugin(state="missing", fix="run `llmd plugins install cuda`, or forget it")
    assert commands(missing)[0] == "llmd plugins install cuda"
