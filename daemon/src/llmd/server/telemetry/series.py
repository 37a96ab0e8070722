"""Metrics of one model: what its requests sent, what they got, and when."""

from __future__ import annotations

from collections import Counter

from llmd.server.telemetry.histogram import Histogram

# vLLM's bounds in seconds, so that its dashboards can be used.
FIRST_TOKEN_S = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1,
    2.5,
    5,
    7.5,
    10,
    20,
    40,
    80,
    160,
    640,
    2560,
)
TOKEN_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
REQUEST_S = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
# Lower bounds of our own: small models are faster than vLLM's lowest ones.
FINE_TOKEN_S = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, *TOKEN_S)
FINE_REQUEST_S = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, *REQUEST_S)
LENGTHS = tuple(digit * 10**power for power in range(7) for digit in (1, 2, 5))


class Series:
    """Histograms are in seconds and tokens. A request counts when it has ended, a token when it arrives."""

    def __init__(self) -> None:
        self.first_token = Histogram(FIRST_TOKEN_S)
        self.inter_token = Histogram(FINE_TOKEN_S)
        self.per_output_token = Histogram(FINE_TOKEN_S)
        self.queue = Histogram(FINE_REQUEST_S)
        self.prefill = Histogram(FINE_REQUEST_S)
        self.decode = Histogram(FINE_REQUEST_S)
        self.inference = Histogram(FINE_REQUEST_S)
        self.whole = Histogram(FINE_REQUEST_S)
        self.prompt_len = Histogram(LENGTHS)
        self.answer_len = Histogram(LENGTHS)
        self.choices = Histogram((1, 2, 5, 10, 20))
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.answer_tokens = 0
        self.finished: Counter[str] = Counter()
        self.loads = 0
        self.restarts = 0
        self.replans = 0
