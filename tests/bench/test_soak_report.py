"""Growth is detected, noise is not, and all faults are reported."""

from __future__ import annotations

import math
from random import Random

import pytest

from bench.soak_levels import Sample, Use
from bench.soak_report import FIGURES, Soaked, faults_of, judge, report

MIB = 1 << 20
METRICS = dict.fromkeys(
    (
        *("requests_running", "requests_waiting", "kv_blocks_used", "kv_blocks", "steps_total"),
        *("answer_tokens_total", "preemptions_total", "prompt_tokens_cached_total", "prompt_tokens_total"),
        "engine_restarts_total",
    ),
    0.0,
)
MEMORY, DESCRIPTORS = FIGURES[0], FIGURES[3]


def samples(front: list[Use]) -> list[Sample]:
    return [Sample(5.0 * place, use, Use(), Use(), METRICS) for place, use in enumerate(front)]


def noisy(level: float, slope: float) -> list[Use]:
    """Return 360 samples of a process with ``level`` MiB, which grows by ``slope`` MiB per sample."""
    random = Random(1)
    return [
        Use(anonymous=round(MIB * (level + slope * place + random.gauss(0, 0.5)))) for place in range(360)
    ]


def soaked(front: list[Use], *faults: str, **metrics: float) -> Soaked:
    last = Sample(1800.0, front[-1], Use(), Use(), METRICS | metrics)
    return Soaked(samples(front), last, {"chats": 3}, [*faults], 2, 1)


def test_memory_that_varies_does_not_grow() -> None:
    assert not judge(samples(noisy(60, 0)), MEMORY).grows


def test_memory_that_rises_and_then_stays_does_not_grow() -> None:
    uses = [Use(anonymous=round(MIB * (60 - 20 * math.exp(-place / 30)))) for place in range(360)]
    assert not judge(samples(uses), MEMORY).grows


def test_memory_that_rises_throughout_grows() -> None:
    found = judge(samples(noisy(60, 0.02)), MEMORY)
    assert found.grows
    assert found.slope.low < 0.02 * 720 < found.slope.high


def test_what_depends_on_other_programs_is_told_and_not_judged() -> None:
    uses = [Use(proportional=MIB * (60 + place)) for place in range(360)]
    assert faults_of(soaked(uses)) == []
    assert "| front: proportional | 119.5 MiB | 239.5 MiB | 359.5 MiB |" in report(soaked(uses), {}, 8)


def test_a_descriptor_that_every_minute_loses_grows() -> None:
    assert judge(samples([Use(descriptors=70 + place // 12) for place in range(360)]), DESCRIPTORS).grows


def test_a_clean_soak_has_no_faults_and_every_figure_is_told() -> None:
    clean = soaked(noisy(60, 0))
    assert faults_of(clean) == []
    text = report(clean, {"LLMD_SLOTS": "4"}, 8)
    assert all(f"| {figure.name} |" in text for figure in FIGURES)
    assert "LLMD_SLOTS=4, 8 clients" in text


@pytest.mark.parametrize("name", ["requests_running", "requests_waiting", "kv_blocks_used"])
def test_what_is_held_at_rest_is_a_fault(name: str) -> None:
    assert faults_of(soaked(noisy(60, 0), **{name: 3.0})) == [f"{name} is 3 at rest"]


def test_growth_and_wrong_answers_are_faults() -> None:
    found = faults_of(soaked(noisy(60, 0.02), "chats: status 500"))
    assert found == ["front: memory of its own grew", "chats: status 500"]
