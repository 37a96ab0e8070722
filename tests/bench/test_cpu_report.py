"""The page compares with the faster build, round by round, and reports disturbed rounds."""

from __future__ import annotations

from dataclasses import replace

from bench.cpu_profiles import QUICK
from bench.cpu_quality import Divergence
from bench.cpu_quality_report import Quality
from bench.cpu_report import BesideWork, Comparison, Section, page, row
from bench.cpu_rounds import SHORT, Case, Rounds
from bench.cpu_sides import Start
from bench.quiet import Tally
from bench.reads import Reads
from bench.shapes import Shape
from bench.weight_errors import WeightErrors

SHAPE = Shape("tiny", hidden=100, layers=1, heads=1, kv_heads=1, head_dim=100, ffn=100, vocab=1000)
PRODUCTS = 7 * 100 * 100 + 1000 * 100
DECODE = Case("decode", 2, SHORT)
FOUND = Comparison(
    isa=None,
    rounds=[
        Rounds(
            DECODE,
            {
                "llmd": [1.0, 2.0, 10.0],
                "llama.cpp native": [4.0, 2.0, 5.0],
                "llama.cpp no-amx": [1.0, 1.0, 9.0],
            },
            [1e6, 2e6, 9e6],
        )
    ],
    peaks={"VNNI": 1e6},
    reads={"llmd": Reads(500_000), "llama.cpp": Reads(250_000)},
    starts={
        "llmd, first": Start(1.0, 1.5, {"anonymous": 7_000_000, "file": 2_000_000}, 3_000_000),
        "llama.cpp native, again": Start(0.5, 0.75, {"anonymous": 1_000_000, "file": 0}, None),
    },
    tally=Tally([0.01, 0.03], [0.4]),
)
SECTION = Section(
    "q4",
    "Q4_0",
    [FOUND],
    Quality(
        [
            WeightErrors("trained", {"llmd": 3e-3, "llama.cpp": 2e-3}, {"llmd": 4.44, "llama.cpp": 4.5}),
            WeightErrors("random", {"llmd": 1e-3, "llama.cpp": 2e-3}, {"llmd": 4.44, "llama.cpp": 4.63}),
        ],
        {"Q4_0": 250_000},
        {"llmd q4": Divergence(0.1, 2.5, 0.9)},
        {"llmd q4": Divergence(0.2, 1.5, 0.8), "llama.cpp BF16": Divergence(0.0, 1.5, 1.0)},
    ),
)


def shown(found: Comparison = FOUND, *, warnings: tuple[str, ...] = ()) -> str:
    return page(SHAPE, QUICK, warnings, "2030-01-01, a CPU", "1.2.3", [replace(SECTION, comparisons=[found])])


def test_the_ratio_is_the_median_of_the_rounds_to_the_faster_build() -> None:
    cells = row(SHAPE, FOUND, FOUND.rounds[0]).split(" | ")
    assert cells[:5] == ["| decode, 2 at once", "2.0", "4.0", "1.0", "**1.00** (0.25–2.00)"]


def test_shares_are_of_what_was_read_and_multiplied() -> None:
    *_, read, integers = row(SHAPE, FOUND, FOUND.rounds[0]).removesuffix(" |").split(" | ")
    kept = 2 * SHORT * SHAPE.kv_token_bytes
    assert read == f"{(500_000 + kept) / 2e6:.2f} / {2 * (250_000 + kept) / 2e6:.2f}"
    assert integers == f"{2 * PRODUCTS * 2 / 1e6:.2f} / {2 * PRODUCTS * 4 / 1e6:.2f}"


def test_a_prompt_needs_the_head_once_and_reads_too_little_to_say() -> None:
    rounds = Rounds(Case("prefill", 1, 512), {"llmd": [10.0], "llama.cpp native": [5.0]}, [])
    *_, ratio, read, integers = row(SHAPE, FOUND, rounds).removesuffix(" |").split(" | ")
    assert (ratio, read) == ("**2.00**", "–")
    assert integers == f"{2 * (PRODUCTS - 100_000) * 10 / 1e6:.2f} / {2 * (PRODUCTS - 100_000) * 5 / 1e6:.2f}"


def test_starts_sizes_and_quality_are_told() -> None:
    text = shown()
    assert "| llmd, first | 1.00 | 1.50 | 7 | 2 | 3 |" in text
    assert "| llama.cpp native, again | 0.50 | 0.75 | 1 | 0 | – |" in text
    assert f"llmd 0 MB ({8 * 500_000 / PRODUCTS:.2f} bits a weight)" in text
    errors = text[text.index("| error of the weights (NMSE) | llmd q4 | bits | llama.cpp Q4_0 | bits |") :]
    assert errors.splitlines()[2:4] == [
        "| trained | 3.00e-03 | 4.44 | 2.00e-03 | 4.50 | 1.50 |",
        "| random | 1.00e-03 | 4.44 | 2.00e-03 | 4.63 | 0.50 |",
    ]
    assert "| llmd q4 | 1.00e-01 | 90.0 % | 2.00e-01 | 80.0 % |" in text
    assert "| llama.cpp BF16 | – | – | 0.00e+00 | 100.0 % |" in text


def test_the_rounds_that_were_thrown_out_are_told() -> None:
    assert (
        "Of all cases and starts together, 1 of 3 rounds were thrown out because other processes" in shown()
    )


def test_robustness_stands_apart_with_the_ratio_to_the_best_way_of_waiting() -> None:
    rounds = Rounds(
        Case("decode", 1, SHORT),
        {"llmd": [20.0], "llama.cpp native": [0.5], "llama.cpp native, passive": [10.0]},
        [],
    )
    section = replace(SECTION, beside=BesideWork([rounds], Tally([0.01], [])))
    text = page(SHAPE, QUICK, (), "2030-01-01, a CPU", "1.2.3", [section])
    before, _, apart = text.partition("### Robustness of q4 and Q4_0 next to other work")
    assert "| decode, 1 at once | 20.0 | 0.5 | 10.0 | **2.00** |" in apart
    assert "decode, 1 at once" not in before
    assert "Robustness" not in shown()


def test_overrides_are_told() -> None:
    assert "Not as pinned" not in shown()
    assert "**Not as pinned:** --rounds 2." in shown(warnings=("--rounds 2",))
