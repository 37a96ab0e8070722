from __future__ import annotations

import msgspec

from llmd_tui.state.daemon_state import Loading, Model, Verdict
from llmd_tui.widgets.verdicts import sentences


def texts(models: list[Model], loading: dict[str, Loading] | None = None) -> list[str]:
    return [one.plain for one in sentences({model.name: model for model in models}, loading or {})]


def test_warnings_come_first() -> None:
    calm = Model("a", "loaded", verdicts=(Verdict("decode runs at 0.91 of what memory allows"),))
    full = Model("b", "loaded", verdicts=(Verdict("3 requests wait for KV blocks", "warn"),))
    assert texts([calm, full]) == [
        "! b: 3 requests wait for KV blocks",
        "· a: decode runs at 0.91 of what memory allows",
    ]


def test_loads_and_failures_are_said() -> None:
    failed = Model("a", "failed")
    loading = {"b": Loading("weights", 1, 4), "c": Loading()}
    assert texts([failed], loading) == ["! a: failed", "· b: loading, weights 25%", "· c: loading, starting"]


def test_there_is_always_a_sentence() -> None:
    assert texts([]) == ["No model is loaded."]
    assert texts([msgspec.convert({"name": "a", "status": "loaded"}, Model)]) == [
        "Nothing waits and nothing is wrong."
    ]
