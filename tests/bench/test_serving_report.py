"""The page compares round by round; ratios above one say that llmd is better, for rates and for times."""

from __future__ import annotations

from typing import Any

from bench.serving_report import RATES, TIMES, Measured, counted, report, row


def result(**figures: float) -> dict[str, Any]:
    whole: dict[str, Any] = dict.fromkeys([*RATES.values(), *TIMES.values()], 1.0)
    counts = {"num_prompts": 32, "total_input_tokens": 100, "total_output_tokens": 50}
    return {**whole, **counts, "client_cpu_s": 0.1, "duration": 10.0, **figures}


ROUNDS = [
    (result(rate=10.0, time=2.0), result(rate=5.0, time=8.0, client_cpu_s=0.3)),
    (result(rate=20.0, time=4.0, client_cpu_s=0.2), result(rate=20.0, time=4.0)),
    (result(rate=30.0, time=6.0), result(rate=60.0, time=3.0)),
]


def test_the_ratio_is_the_median_of_the_rounds_and_above_one_where_llmd_is_better() -> None:
    assert row("tokens/s", "rate", ROUNDS, is_rate=True) == "| tokens/s | 20.0 | 20.0 | 1.00 (0.50–2.00) |"
    assert row("TTFT", "time", ROUNDS, is_rate=False) == "| TTFT | 4.0 | 4.0 | 1.00 (0.50–4.00) |"


def test_what_was_asked_and_what_the_client_took_is_told() -> None:
    text = counted(ROUNDS)
    assert text.startswith("32 requests a round; first round: llmd 100 tokens in, 50 out")
    assert text.endswith("at most 2.0 % of a processor beside llmd, 3.0 % beside llama-server.")


def test_the_page_has_a_table_for_each_workload() -> None:
    text = report(Measured("tiny", "today", "1.2", "passive", {"a": ROUNDS, "b": ROUNDS}, {"llmd": 3 << 20}))
    assert text.startswith("# tiny: the daemon beside llama.cpp's server\n\ntoday\n")
    assert (text.count("\n## "), text.count("| mean TTFT, ms |")) == (2, 2)
    assert "llmd 3 MiB" in text
