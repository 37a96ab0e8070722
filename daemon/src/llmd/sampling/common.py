"""Requests with only the common samplers (temperature, top-k, top-p, min-p), which devices can run too."""

from __future__ import annotations

import math

from msgspec import Struct

from llmd.api.samplers import SamplingParams
from llmd.sampling.sampler_chain import active_order


class CommonChain(Struct, frozen=True):
    """Parameters of a request that uses only the common samplers."""

    filter_temperature: float
    """Temperature of the logits that top-p and min-p see."""
    draw_temperature: float
    """Temperature of the logits that the token is drawn from."""
    top_k: float = math.inf
    top_p: float = 1.0
    min_p_before: float = -math.inf
    """Logarithm of the ratio of a min-p before top-p; -inf: none."""
    min_p_after: float = -math.inf
    """Logarithm of the ratio of a min-p after top-p; -inf: none."""

    def columns(self) -> tuple[float, ...]:
        """Return the parameters as a row of `llmd.api.draws.Draws.table`."""
        return (
            self.filter_temperature,
            self.draw_temperature,
            self.top_k,
            self.top_p,
            self.min_p_before,
            self.min_p_after,
        )


def common_chain(params: SamplingParams) -> CommonChain | None:
    """Return the request's samplers as a common chain; None if they are not one."""
    order = active_order(params)
    if (
        params.mirostat
        or params.dynamic_temperature
        or not {"temperature", "top_k", "top_p", "min_p"}.issuperset(order)
    ):
        return None
    place = {name: index for index, name in enumerate(order)}
    narrowing = {
        name: place[name] > place.get("temperature", -1) for name in ("top_p", "min_p") if name in place
    }
    if len(set(narrowing.values())) > 1 and params.temperature != 1.0:
        return None  # top-p and min-p see different temperatures
    if place.get("top_k", -1) > place.get("top_p", len(order)):
        return None
    draw_temperature = params.temperature if "temperature" in place else 1.0
    min_p = math.log(params.min_p) if "min_p" in place else -math.inf
    after = "min_p" in place and place["min_p"] > place.get("top_p", len(order))
    return CommonChain(
        filter_temperature=1.0 if False in narrowing.values() else draw_temperature,
        draw_temperature=draw_temperature,
        top_k=float(params.top_k) if "top_k" in place else math.inf,
        top_p=params.top_p if "top_p" in place else 1.0,
        min_p_before=-math.inf if after else min_p,
        min_p_after=min_p if after else -math.inf,
    )
