"""The section on quality of the page of `bench.cpu`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.cpu_quality import Divergence
from bench.weight_errors import WeightErrors, error_table


@dataclass(frozen=True)
class Quality:
    """The measured loss of a pair of formats."""

    errors: Sequence[WeightErrors]
    """Empty: they are not measured on this shape."""
    types: Mapping[str, int]
    """The peer's bytes by type."""
    peaked: Mapping[str, Divergence]
    """Divergences on the timed model."""
    guide: Mapping[str, Divergence]
    """Divergences on the guide."""


def quality(quant: str, kind: str, found: Quality) -> Iterator[str]:
    """Yield the lines of the section."""
    types = ", ".join(f"{name} {count / 1e6:.0f} MB" for name, count in found.types.items())
    yield f"### Quality of {quant} and {kind}"
    yield ""
    if found.errors:
        yield from error_table(quant, kind, found.errors)
        yield ""
    yield f"The timed weights in {kind} are {types}."
    yield ""
    yield "| KL from llmd unquantised, nats | this model | same best token | guide | same best token |"
    yield "|---|---|---|---|---|"
    for name, guide in found.guide.items():
        here = found.peaked.get(name)
        cells = "– | –" if here is None else f"{here.kl:.2e} | {100 * here.same_best:.1f} %"
        yield f"| {name} | {cells} | {guide.kl:.2e} | {100 * guide.same_best:.1f} % |"
    entropies = (next(iter(each.values())).entropy for each in (found.peaked, found.guide))
    yield ""
    yield "Entropy of a token unquantised: this model {:.1f}, guide {:.1f} nats.".format(*entropies)
