"""A side is timed through a real daemon's API."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.checkpoint import write_checkpoint
from bench.http_side import HttpSide, Stream, _has_choice
from bench.servers import llmd_server
from bench.shapes import Shape

TINY = Shape("tiny", hidden=64, layers=2, heads=2, kv_heads=1, head_dim=32, ffn=128, vocab=1000)
PROMPTS = [list(range(300, 320)), list(range(400, 420))]


def test_a_daemon_is_timed_and_its_errors_are_told(tmp_path: Path) -> None:
    model = write_checkpoint(TINY, tmp_path / "tiny")
    with llmd_server(model, tmp_path, quant="q4", slots=2, context_len=64, isa="avx2") as server:
        side = HttpSide("llmd", server.url)
        assert side.prefill_rate(PROMPTS[0]) > 0
        assert side.decode_rate(PROMPTS, 8) > 0
        with pytest.raises(RuntimeError, match="llmd answered 400"):
            side.decode_rate([list(range(300, 400))], 8)
        with pytest.raises(RuntimeError, match=r"llmd sent 201 tokens in 4\d events"):
            side.decode_rate(PROMPTS[:1], 200)


def test_rates_of_concurrent_answers_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answers(*_: object) -> list[Stream]:
        return [Stream(1.0, 3.0, 9), Stream(2.0, 3.0, 9)]

    monkeypatch.setattr(HttpSide, "_answers", answers)
    assert HttpSide("x", "http://127.0.0.1:1").decode_rate(PROMPTS, 8) == 8 / 2 + 8 / 1


def test_an_answer_in_one_piece_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answers(*_: object) -> list[Stream]:
        return [Stream(1.0, 1.0, 1)]

    monkeypatch.setattr(HttpSide, "_answers", answers)
    with pytest.raises(RuntimeError, match="x sent 9 tokens in 1 events"):
        HttpSide("x", "http://127.0.0.1:1").decode_rate(PROMPTS[:1], 8)


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        (b'data: {"choices":[{"text":"a"}]}\n', True),
        (b'data: {"choices":[],"usage":{}}\n', False),
        (b"data: [DONE]\n", False),
        (b": keep-alive\n", False),
        (b"\n", False),
    ],
)
def test_only_parts_of_the_answer_count(line: bytes, *, counts: bool) -> None:
    assert _has_choice(line) is counts
