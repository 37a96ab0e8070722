"""Computes the measures of a load as ``vllm bench serve`` defines them.

TTFT is the time to the first output, ITL the times between outputs, E2EL the time to the end of the answer.
TPOT is (E2EL - TTFT) / (tokens - 1); an answer with one token has no TPOT. Failed requests are only counted.
The peak of the throughput is measured more exactly than there (`peak_tokens_per_s`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from llmd.benchmark.timeline import Outcome

METRICS = {
    "ttft": "Time to First Token",
    "tpot": "Time per Output Token (excl. 1st token)",
    "itl": "Inter-token Latency",
    "e2el": "End-to-end Latency",
    "client_queue_time": "Time in the Client's Queue",
    "e2el_including_client_queue": "End-to-end Latency with the Client's Queue",
}


class Figures(Struct, frozen=True):
    """The measures of a load: lengths in tokens, rates per second, named as in the JSON result."""

    duration: float
    completed: int
    failed: int
    total_input_tokens: int
    total_output_tokens: int
    request_throughput: float
    request_goodput: float | None
    output_throughput: float
    total_token_throughput: float
    max_output_tokens_per_s: float
    max_concurrent_requests: int


def figures(outcomes: Sequence[Outcome], duration_s: float, goals_ms: Mapping[str, float]) -> Figures:
    """Compute the measures of outcomes with known ``output_len``; a good request meets all ``goals_ms``."""
    done = completed(outcomes)
    num_input = sum(outcome.prompt_len for outcome in done)
    num_output = sum(outcome.output_len or 0 for outcome in done)
    num_good = sum(is_good(outcome, goals_ms) for outcome in done)
    return Figures(
        duration=duration_s,
        completed=len(done),
        failed=len(outcomes) - len(done),
        total_input_tokens=num_input,
        total_output_tokens=num_output,
        request_throughput=len(done) / duration_s,
        request_goodput=num_good / duration_s if goals_ms else None,
        output_throughput=num_output / duration_s,
        total_token_throughput=(num_input + num_output) / duration_s,
        max_output_tokens_per_s=peak_tokens_per_s(done, duration_s),
        max_concurrent_requests=most_at_once(done),
    )


def completed(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the outcomes without an error."""
    return [outcome for outcome in outcomes if not outcome.error]


def errors(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """Count each error, the most frequent first."""
    return dict(Counter(outcome.error for outcome in outcomes if outcome.error).most_common())


def tpot_s(outcome: Outcome) -> float | None:
    """Return the seconds per token after the first; None if there is none."""
    if (outcome.output_len or 0) < 2:
        return None
    return (outcome.latency_s - outcome.ttft_s) / ((outcome.output_len or 0) - 1)


def is_good(outcome: Outcome, goals_ms: Mapping[str, float]) -> bool:
    """Whether a request met every goal (goodput of Zhong et al. 2024, DistServe)."""
    took_s = {"ttft": outcome.ttft_s, "tpot": tpot_s(outcome) or 0.0, "e2el": outcome.latency_s}
    return all(1000 * took_s[name] <= goal_ms for name, goal_ms in goals_ms.items())


def samples_ms(outcomes: Iterable[Outcome]) -> dict[str, list[float]]:
    """Return every measured time in milliseconds by metric."""
    done = completed(outcomes)
    seconds: dict[str, list[float]] = {
        "ttft": [outcome.ttft_s for outcome in done],
        "tpot": [time_s for outcome in done if (time_s := tpot_s(outcome)) is not None],
        "itl": [time_s for outcome in done for time_s in outcome.itls_s],
        "e2el": [outcome.latency_s for outcome in done],
        "client_queue_time": [outcome.queue_s for outcome in done],
        "e2el_including_client_queue": [outcome.queue_s + outcome.latency_s for outcome in done],
    }
    return {name: [1000 * time_s for time_s in times] for name, times in seconds.items()}


def statistics_of(name: str, times_ms: Sequence[float], percentiles: Sequence[float]) -> dict[str, float]:
    """Return mean, median, standard deviation and percentiles, named as in the JSON; 0 without times."""
    times = np.array(times_ms or [0.0])
    named = {"mean": times.mean(), "median": np.median(times), "std": times.std()}
    named |= {f"p{percent:g}": np.percentile(times, percent) for percent in percentiles}
    return {f"{word}_{name}_ms": float(value) for word, value in named.items()}


def peak_tokens_per_s(outcomes: Sequence[Outcome], duration_s: float) -> float:
    """Return the most output tokens that arrived in any one second, or the rate of the whole measurement if
    that is higher, as in a measurement of less than a second.

    The tokens of an answer are spread over its chunks, since one chunk may have several.
    """
    arrivals = [np.cumsum((one.start_s + one.ttft_s, *one.itls_s)) for one in outcomes]
    if not arrivals:
        return 0.0
    shares = [
        np.full(len(at_s), (one.output_len or 0) / len(at_s))
        for one, at_s in zip(outcomes, arrivals, strict=True)
    ]
    at_s, tokens = np.concatenate(arrivals), np.concatenate(shares)
    order = np.argsort(at_s)
    at_s, before = at_s[order], np.concatenate([[0.0], np.cumsum(tokens[order])])
    in_a_second = before[np.searchsorted(at_s, at_s + 1.0)] - before[:-1]
    return max(float(in_a_second.max()), float(before[-1]) / duration_s)


def most_at_once(outcomes: Iterable[Outcome]) -> int:
    """Return the most requests in flight at the same time; an end counts before a simultaneous start."""
    changes = sorted(
        change
        for outcome in outcomes
        for change in ((outcome.start_s, 1), (outcome.start_s + outcome.latency_s, -1))
    )
    return int(max(np.cumsum([step for _, step in changes]), default=0))
