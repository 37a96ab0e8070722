"""A side answers calls by method name, reports its memory, and an early exit is reported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.worker import Side

ROOT = Path(__file__).parents[2]
SIDE = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from bench.worker import answer

class Adder:
    def add(self, first, second):
        return first + second

    def fail(self):
        os._exit(3)

answer(Adder(), {{"load_s": 0.5, "told": os.environ.get("TOLD")}})
"""


def side() -> Side:
    return Side("adder", [sys.executable, "-c", SIDE], {"TOLD": "yes"})


def test_a_side_has_facts_and_answers_calls() -> None:
    with side() as adder:
        assert adder.facts == {"load_s": 0.5, "told": "yes"}
        assert [adder.call("add", 1, 2), adder.call("add", [1], [2])] == [3, [1, 2]]


def test_memory_is_told_apart_by_what_backs_it() -> None:
    with side() as adder:
        memory = adder.call("resident_bytes")
    assert set(memory) == {"anonymous", "file"}
    assert all(1 << 20 < size < 1 << 30 for size in memory.values())


def test_a_side_that_ends_is_told() -> None:
    with side() as adder, pytest.raises(RuntimeError, match="adder ended with 3"):
        adder.call("fail")
