"""Formats the result of a soak, and judges whether anything grew."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from bench.machine import describe
from bench.soak_levels import Sample
from bench.trend import Trend, means, trend

PARTS = 20
"""Number of means that the slope is fitted to; each is long enough to be nearly independent of the last."""
NOISE = 0.01
"""How much a measure may vary between thirds, as a share of itself…"""
LEAST_NOISE = {"MiB": 1.0, "": 2.0}
"""…and at least, by its unit."""


class Soaked(Struct, frozen=True):
    """The result of a soak."""

    samples: list[Sample]
    """Taken under load."""
    last: Sample
    """Taken at rest, after the load."""
    ended: Mapping[str, int]
    """Requests that ended as expected, by kind."""
    faults: list[str]
    compared: int
    """Answers that were compared with an earlier one."""
    filled: int
    """Requests before the soak."""


class Figure(Struct, frozen=True):
    """A measure that must not grow. It is not judged if it depends on other programs."""

    name: str
    unit: str
    of: Callable[[Sample], float]
    is_judged: bool = True


class Judged(Struct, frozen=True):
    """The means of a measure in each third, and its slope per hour over the last two thirds."""

    figure: Figure
    thirds: tuple[float, float, float]
    slope: Trend

    @property
    def grows(self) -> bool:
        """Whether the last third exceeds the second by more than noise, and the slope is significantly
        positive.
        """
        _, second, third = self.thirds
        noise = max(LEAST_NOISE[self.figure.unit], NOISE * second)
        return self.figure.is_judged and third - second > noise and self.slope.low > 0


FIGURES = (
    Figure("front: memory of its own", "MiB", lambda one: one.front.anonymous / 2**20),
    Figure("front: resident", "MiB", lambda one: one.front.resident / 2**20),
    Figure("front: proportional", "MiB", lambda one: one.front.proportional / 2**20, is_judged=False),
    Figure("front: descriptors", "", lambda one: one.front.descriptors),
    Figure("front: threads", "", lambda one: one.front.threads),
    Figure("engine: memory of its own", "MiB", lambda one: one.engine.anonymous / 2**20),
    Figure("engine: resident", "MiB", lambda one: one.engine.resident / 2**20),
    Figure("engine: proportional", "MiB", lambda one: one.engine.proportional / 2**20, is_judged=False),
    Figure("engine: descriptors", "", lambda one: one.engine.descriptors),
    Figure("engine: threads", "", lambda one: one.engine.threads),
    Figure("other processes: count", "", lambda one: one.helpers.processes),
    Figure("other processes: memory of their own", "MiB", lambda one: one.helpers.anonymous / 2**20),
    Figure("KV blocks in use", "", lambda one: one.metrics["kv_blocks_used"]),
)


def judged(samples: Sequence[Sample]) -> list[Judged]:
    """Judge every measure."""
    return [judge(samples, figure) for figure in FIGURES]


def judge(samples: Sequence[Sample], figure: Figure) -> Judged:
    """Judge one measure."""
    values = [figure.of(one) for one in samples]
    first, second, third = means(values, 3)
    hours, later = [one.at_s / 3600 for one in samples][len(samples) // 3 :], values[len(samples) // 3 :]
    parts = min(PARTS, len(later))
    return Judged(figure, (first, second, third), trend(means(hours, parts), means(later, parts)))


def faults_of(soaked: Soaked) -> list[str]:
    """Return what went wrong: growth, wrong answers, requests or KV blocks left at rest."""
    last = soaked.last.metrics
    at_rest = {name: last[name] for name in ("requests_running", "requests_waiting", "kv_blocks_used")}
    grown = [one.figure.name for one in judged(soaked.samples) if one.grows]
    return [
        *(f"{name} grew" for name in grown),
        *(f"{name} is {value:g} at rest" for name, value in at_rest.items() if value),
        *soaked.faults,
    ]


def report(soaked: Soaked, settings: Mapping[str, str], clients: int) -> str:
    """Return the page for the results."""
    samples, last = soaked.samples, soaked.last.metrics
    waiting = [one.metrics["requests_waiting"] for one in samples]
    chosen = ", ".join(f"{name}={value}" for name, value in settings.items())
    how = (
        f"{describe()}; {datetime.now(UTC):%Y-%m-%d}. `python -m bench.soak --minutes {samples[-1].at_s / 60:.0f}`: the guide, "
        f"{chosen}, {clients} clients on the Unix socket, each with its next request as soon as the last has ended. Before, "
        f"{soaked.filled} requests filled what the daemon bounds by number (1000 kept responses, 256 tried grammars, 1024 "
        f"events). Looked at {len(samples)} times. Means of each third; the slope is a straight line through {PARTS} means of "
        "the last two thirds, with its interval of 95 %. A figure grows where its last third is above the second by more "
        f"than {NOISE:.0%} (at least {LEAST_NOISE['MiB']:g} MiB, {LEAST_NOISE['']:g} of what is counted) and the interval "
        "lies above zero. Memory of its own is what no file backs; the other processes render templates and try grammars."
    )
    done = (
        f"{sum(soaked.ended.values())} requests ended as they should, {len(soaked.faults)} otherwise. {soaked.compared} "
        f"answers were held against an earlier one to the same request. The queue: {min(waiting):g} to {max(waiting):g} "
        f"sequences waited, {statistics.median(waiting):g} in the median. The engine took {last['steps_total']:.0f} steps, "
        f"made {last['answer_tokens_total']:.0f} tokens, gave {last['preemptions_total']:.0f} sequences' blocks to others, and "
        f"found {last['prompt_tokens_cached_total']:.0f} of {last['prompt_tokens_total']:.0f} prompt tokens in its cache; it "
        f"was started again {last['engine_restarts_total']:.0f} times. At rest: {last['requests_running']:.0f} running, "
        f"{last['requests_waiting']:.0f} waiting, {last['kv_blocks_used']:.0f} of {last['kv_blocks']:.0f} blocks referred to."
    )
    return "\n".join(["# Soak", "", how, "", done, "", *_figures(soaked), "", *_kinds(soaked), ""])


def _figures(soaked: Soaked) -> list[str]:
    head = [
        "| | first third | second | last | slope per hour | at rest | grows |",
        "|---|---|---|---|---|---|---|",
    ]
    return [*head, *(_row(one, soaked.last) for one in judged(soaked.samples))]


def _row(one: Judged, last: Sample) -> str:
    unit = f" {one.figure.unit}".rstrip()
    thirds = " | ".join(f"{value:.1f}{unit}" for value in one.thirds)
    slope = f"{one.slope.slope:+.2f} ({one.slope.low:+.2f} to {one.slope.high:+.2f})"
    verdict = ("yes" if one.grows else "no") if one.figure.is_judged else "not judged"
    return f"| {one.figure.name} | {thirds} | {slope} | {one.figure.of(last):.1f}{unit} | {verdict} |"


def _kinds(soaked: Soaked) -> list[str]:
    head = ["| requests | ended as they should |", "|---|---|"]
    return [*head, *(f"| {name} | {count} |" for name, count in sorted(soaked.ended.items()))]
