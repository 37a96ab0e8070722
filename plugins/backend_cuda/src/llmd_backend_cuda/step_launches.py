"""The launches of a stage's steps, made once for each bucket of rows."""

from __future__ import annotations

import functools
from collections.abc import Container, Iterable, Iterator, Sequence

from llmd.api.adapter_items import applies_adapters
from llmd_backend_cuda.adapter_memory import AdapterMemory
from llmd_backend_cuda.buckets import row_buckets
from llmd_backend_cuda.context import Context
from llmd_backend_cuda.loaded import PlacedWeights
from llmd_backend_cuda.ops.fastest import Fastest
from llmd_backend_cuda.ops.linear import Product
from llmd_backend_cuda.outputs import Outputs
from llmd_backend_cuda.programs import body_launches, body_products, head_launches, head_products
from llmd_backend_cuda.runtime import Launch
from llmd_backend_cuda.segments import Segment, segments_of
from llmd_backend_cuda.stage_memory import StageMemory
from llmd_backend_cuda.tuning import Tuner

_Launches = tuple[tuple[int, Launch], ...]
"""Each with its part."""


class StepLaunches:
    """The launches of all steps of a stage. To make them compiles their kernels."""

    def __init__(
        self,
        memory: StageMemory,
        weights: PlacedWeights,
        outputs: Sequence[Outputs | None],
        streamed: Container[int],
        tuner: Tuner | None,
    ) -> None:
        """``outputs`` are those of each ticket, ``streamed`` the parts that are streamed.

        ``tuner`` finds the fastest variants of products; None: those for an H100.

        Raises:
            DeviceError: the card failed while products were measured.
        """
        limits = memory.limits
        self._streamed = streamed
        self._segments: dict[tuple[int, int, int, bool], tuple[Segment, ...]] = {}
        context = memory.context(limits.max_rows, weights)
        has_adapters = applies_adapters(context.program)
        self._adapters = AdapterMemory.of(context, weights.tables) if has_adapters else None
        kinds = {False: None, True: self._adapters} if has_adapters else {False: None}
        fastest: Fastest = {}
        if tuner is not None:
            products = functools.partial(_products, memory, weights, context, outputs[0], kinds.values())
            fastest = tuner.fastest(context, products)
        self._bodies: dict[tuple[int, bool], _Launches] = {}
        for rows in row_buckets(limits.max_rows):
            context = memory.context(rows, weights, fastest)
            for adapted, adapters in kinds.items():
                memories = memory.memories(rows, weights.tables, adapters)
                self._bodies[rows, adapted] = tuple(body_launches(context, memories, rows))
        context = memory.context(limits.max_rows, weights, fastest)
        self._heads: dict[tuple[int, int], _Launches] = {}
        for place, one in enumerate(outputs):
            if one is not None:
                for count in row_buckets(limits.max_outputs):
                    self._heads[place, count] = _head(context, one, count)

    def segments(self, place: int, rows: int, outputs: int, *, adapted: bool = False) -> tuple[Segment, ...]:
        """Return the launches of a step; ``place`` is that of its ticket, the numbers are buckets.

        ``adapted``: rows of the step have adapters.
        """
        key = (place, rows, outputs, adapted)
        if key not in self._segments:
            launches = (*self._bodies[rows, adapted], *self._heads.get((place, outputs), ()))
            self._segments[key] = segments_of(launches, self._streamed)
        return self._segments[key]


def _products(
    memory: StageMemory,
    weights: PlacedWeights,
    context: Context,
    outputs: Outputs | None,
    kinds: Iterable[AdapterMemory | None],
    rows: int,
) -> Iterator[Product]:
    """Yield the products of a step with a number of rows, with and without adapters; the head has its first
    rows.
    """
    for adapters in kinds:
        yield from body_products(context, memory.memories(rows, weights.tables, adapters), rows)
    if outputs is not None and rows <= context.limits.max_outputs:
        for product in head_products(context, outputs.raw.pointer):
            product.rows.chosen = None  # no step has chosen any
            yield product


def _head(context: Context, outputs: Outputs, count: int) -> _Launches:
    """Return the launches of the head for a number of output rows, and of what follows it."""
    last = context.program.instructions[-1].part
    launches = (*head_launches(context, outputs.raw.pointer, count), *outputs.before_late(count))
    return tuple((last, launch) for launch in launches)
