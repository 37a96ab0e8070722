"""The page compares round by round; a ratio above 1 means that llmd is better, for rates and times."""

from __future__ import annotations

from typing import Any

from bench.quiet import Tally
from bench.serving_report import RATES, TIMES, Measured, counted, report, row
from bench.weight_errors import WeightErrors


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
    assert text.endswith("at most 2.0 % of a processor with llmd, 3.0 % with llama-server.")


def measured(**changed: Any) -> Measured:
    tally = Tally([0.01, 0.02, 0.03], [0.4])
    known = {
        "errors": [
            WeightErrors("trained", {"llmd": 2e-5, "llama.cpp": 2e-5}, {"llmd": 8.5, "llama.cpp": 8.5})
        ],
        "results": {"a": ROUNDS, "b": ROUNDS},
        "tallies": {"a": tally, "b": tally},
        "memory": {"llmd": 3 << 20},
    }
    return Measured("tiny", "today", "1.2", "q8_g32", "Q8_0", 16, "passive", **(known | changed))


def test_the_page_has_a_table_for_each_workload() -> None:
    text = report(measured())
    assert text.startswith(
        "# tiny under load: the daemon (q8_g32) compared with llama.cpp's server (Q8_0)\n\ntoday\n"
    )
    assert (text.count("\n## "), text.count("| mean TTFT, ms |")) == (2, 2)
    assert "llmd 3 MiB" in text
    assert text.count("1 of 4 rounds were thrown out") == 2


def test_bits_and_errors_of_both_formats_are_told() -> None:
    text = report(measured())
    assert "`llmd serve --quant q8_g32 --slots 16`" in text
    assert "| trained | 2.00e-05 | 8.50 | 2.00e-05 | 8.50 | 1.00 |" in text


def test_a_page_that_ends_early_has_what_was_measured() -> None:
    text = report(measured(results={"a": ROUNDS}, memory={}))
    assert (text.count("\n## "), "all processes: not reached." in text) == (1, True)
