"""The page of a comparison with a second peer."""

from __future__ import annotations

from bench.cpu_rounds import Case, Rounds
from bench.quiet import Tally
from bench.second_peer_report import fastest_peer, page, ratio

ROUNDS = Rounds(
    Case("prefill", 1, 512),
    {"llmd q4": [10.0, 12.0, 20.0], "fork Q4_0": [10.0, 10.0, 10.0], "fork Q4_K_M": [5.0, 20.0, 9.0]},
    [],
)


def test_ratios_are_of_the_same_round() -> None:
    assert ratio([10.0, 12.0, 20.0], [10.0, 6.0, 5.0]) == "**2.00** (1.00–4.00)"


def test_the_fastest_column_is_the_one_with_the_highest_median() -> None:
    assert fastest_peer(ROUNDS) == "fork Q4_0"


def test_the_page_names_both_sides_and_the_version() -> None:
    text = page("llama-1b", "avx2", "today", "7 (abc)", [ROUNDS], Tally([0.0], []))
    assert text.startswith("# llama-1b over HTTP: llmd compared with a fork of llama.cpp, avx2 alone\n")
    assert "version 7 (abc)" in text
    assert "| prefill 512 | 12.0 | 10.0 | 9.0 |" in text
    assert "| prefill 512 | fork Q4_0 | **1.20** (1.00–2.00) |" in text


def test_a_page_without_results_has_no_table() -> None:
    assert "|" not in page("llama-1b", None, "today", "7", [], Tally())
