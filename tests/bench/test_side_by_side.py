"""The side-by-side runner takes turns on the same prompts and compares round by round."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.shapes import SHAPES
from bench.side_by_side import interleave, row
from bench.worker import Measured, Side

ROOT = Path(__file__).parents[2]
SHAPE = next(iter(SHAPES.values()))
SIDE = """
import sys
sys.path.insert(0, {root!r})
from bench.worker import Measured, answer_requests

def measure(prompt, num_decode):
    with open({log!r}, "a") as log:
        print({name!r}, *prompt, file=log)
    return Measured(prefill_s=len(prompt), decode_s=num_decode)

answer_requests(measure, load_s=0.5)
"""


@contextmanager
def side(name: str, log: Path) -> Iterator[Side]:
    """A process that answers at once, and writes down what it was asked."""
    with Side(name, [sys.executable, "-c", SIDE.format(root=str(ROOT), log=str(log), name=name)]) as made:
        yield made
    assert made._process.stdout is not None
    made._process.stdout.close()


def test_sides_take_turns_on_the_same_prompts_after_a_warm_up(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with side("ours", log) as ours, side("peer", log) as peer:
        rounds = interleave(ours, peer, SHAPE, rounds=2, prompt_len=3, num_decode=5)
        assert ours.facts["load_s"] == 0.5
    assert rounds == [(Measured(3, 5), Measured(3, 5))] * 2
    asked = [line.split() for line in log.read_text().splitlines()]
    assert [name for name, *_ in asked] == ["ours", "peer"] * 3
    prompts = [tuple(prompt) for _, *prompt in asked]
    assert prompts[::2] == prompts[1::2]
    assert len(set(prompts)) == 3


def test_the_ratio_is_the_median_of_the_rounds_and_not_that_of_the_medians() -> None:
    seconds = [(1.0, 4.0), (2.0, 2.0), (10.0, 5.0)]
    rounds = [(Measured(ours, 0.0), Measured(peer, 0.0)) for ours, peer in seconds]
    shown = row("prefill", rounds, lambda one: 20 / one.prefill_s)
    assert shown == "| prefill | 10.0 | 5.0 | 1.00 (0.50–4.00) |"
