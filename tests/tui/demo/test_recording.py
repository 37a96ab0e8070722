from __future__ import annotations

from pathlib import Path

from llmd_tui.demo.recording import Entry, Recording, write

ENTRIES = [
    Entry(0.0, event={"type": "snapshot", "number": 1}),
    Entry(1.0, path="/llmd/kv", answer={"groups": []}),
    Entry(2.5, event={"type": "report", "number": 2}),
    Entry(3.0, path="/llmd/kv", answer={"groups": [1]}),
    Entry(0.1, stream="/v1/chat/completions", answer={"choices": []}),
]


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(ENTRIES, tmp_path / "a.gz")
    assert Recording.read(tmp_path / "a.gz") == Recording.of(ENTRIES)
    write(ENTRIES, tmp_path / "b.gz")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_the_last_answer_before_a_time_counts() -> None:
    recording = Recording.of(ENTRIES)
    assert recording.length_s == 2.5
    assert recording.answer("/llmd/kv", 0.0) == {"groups": []}
    assert recording.answer("/llmd/kv", 2.9) == {"groups": []}
    assert recording.answer("/llmd/kv", 3.0) == {"groups": [1]}
    assert recording.answer("/absent", 3.0) is None
