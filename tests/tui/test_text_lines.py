from __future__ import annotations

from llmd_tui.text_lines import TextLines


def test_sentences_of_different_kinds_are_written_at_once() -> None:
    lines = TextLines()
    lines.add("model", "a is loaded.")
    lines.add("begun", "r1 began.")
    assert lines.due(0.0) == ["a is loaded.", "r1 began."]
    assert lines.wait_s(0.0) is None


def test_a_kind_has_at_most_one_line_per_second() -> None:
    lines = TextLines()
    lines.add("begun", "r1 began.")
    assert lines.due(10.0) == ["r1 began."]
    for number in (2, 3, 4):
        lines.add("begun", f"r{number} began.")
    assert lines.due(10.4) == []
    assert lines.wait_s(10.25) == 0.75
    assert lines.due(11.0) == ["r4 began. (2 more like this.)"]
    assert lines.due(12.0) == []
