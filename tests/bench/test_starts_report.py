"""The page shows the ratio of the times, what each side starts from, and the discarded rounds."""

from __future__ import annotations

from bench.quiet import Tally
from bench.starts_report import OwnStart, PairStarts, Starts, page

TALLY = Tally([0.01, 0.02, 0.03], [0.4])
FIRST = Starts("first start", {"llmd": [2.0, 3.0, 8.0], "llama.cpp": [2.0, 2.0, 2.0]}, TALLY)
SAME_FILE = PairStarts("file", "Q4_0", None, [FIRST])
OTHER_BITS = PairStarts("q4", "Q4_0", {"llmd": 4.44, "llama.cpp": 4.63}, [FIRST])
OWN = OwnStart([0.5, 0.6, 0.9], TALLY)


def test_the_ratio_is_that_of_the_rounds_and_above_one_where_llmd_takes_longer() -> None:
    text = page("tiny", "today", "1.2", [SAME_FILE])
    assert text.startswith("# tiny: starts of llmd compared with llama.cpp\n\ntoday\n")
    assert "| first start | 3.00 | 2.00 | **1.50** (1.00–4.00) | 1 of 4 |" in text


def test_what_each_side_starts_from_is_told_with_its_bits() -> None:
    text = page("tiny", "today", "1.2", [SAME_FILE, OTHER_BITS])
    assert "## The same GGUF file in Q4_0\n" in text
    assert "## q4 (4.44 bits a weight) from a checkpoint, compared with a GGUF file in Q4_0 (4.63)\n" in text


def test_the_daemons_own_start_stands_apart() -> None:
    text = page("tiny", "today", "1.2", [SAME_FILE, OWN])
    assert "## The daemon's own start" in text
    assert "listens after 0.60 s (0.50–0.90); rounds thrown out: 1 of 4." in text
