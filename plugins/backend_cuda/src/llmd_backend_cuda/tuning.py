"""Measures which variants of products are the fastest, once for each card and shape of matrices.

The best number of blocks, and the best tile, depend on a card's processors, memory and caches, and on whether
a matrix is square, wide or narrow. Results do not depend on them. They are kept in the user's cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from llmd.api.decoding import prepared
from llmd_backend_cuda import compiler
from llmd_backend_cuda.bandwidth import runs_per_s
from llmd_backend_cuda.cached_files import read_file, write_file
from llmd_backend_cuda.context import Context
from llmd_backend_cuda.ops.fastest import FEW_ROWS, ROW_CLASSES, Fastest, ProductShape, Variant
from llmd_backend_cuda.ops.gemm_tiles import tile_candidates
from llmd_backend_cuda.ops.linear import Product, few_rows_launch, geometry_of, is_few, tiled_launches
from llmd_backend_cuda.probe import CardProperties
from llmd_backend_cuda.runtime import Launch, Runtime

log = logging.getLogger(__name__)

_LAUNCHED = (1, 2, 3, 4)
_FEWEST_BYTES = 1 << 20
"""Smaller products take no longer than any launch."""
_CACHE_BYTES = 256 << 20
"""Few rows are multiplied by this much in turn, more than caches hold: a step reads each matrix once."""
_MOST_CYCLED_ROWS = 64
"""More rows are not bound by reading weights."""
_ROUNDS = 3
_BUDGET_S = 0.001
"""Of a variant in a round."""
_LEAST_GAIN = 1.05
"""A variant has to be so much faster than that for an H100, since measured times vary."""


class Choice(msgspec.Struct, frozen=True):
    """What is kept of a shape."""

    shape: ProductShape
    rows: int
    """Row class."""
    fastest: Variant | None


class Tuner:
    """Finds the fastest variants of a card's products."""

    def __init__(
        self,
        card: CardProperties,
        folder: Path,
        measure: Callable[[Runtime, Sequence[Launch]], float] | None = None,
    ) -> None:
        """``folder`` keeps what was measured; in tests, ``measure`` returns how often launches run in
        a second.
        """
        self._path = folder / f"products-{_digest(card)}.json"
        self._measure = measure or _measured
        self._known = {(one.shape, one.rows): one.fastest for one in _read(self._path)}

    def fastest(self, context: Context, products: Callable[[int], Iterable[Product]]) -> Fastest:
        """Return the fastest variants of products; measure those that are not known.

        ``products`` returns the products of a step with a number of rows, at most `StageLimits.max_rows`.
        They read and write the memory of ``context``, which no step uses meanwhile.

        Raises:
            DeviceError: the card failed, or a kernel does not compile.
        """
        unknown = [
            (most, rows, alike)
            for most, rows in _classes(context.limits.max_rows)
            for alike in _by_shape(products(rows))
            if (alike[0].shape, most) not in self._known
        ]
        if unknown:
            log.info("measuring products of %d shapes", len(unknown))
        # All kernels are compiled at the same time.
        variants = [_variants(context, alike, rows) for _, rows, alike in unknown]
        for (most, _, alike), found in zip(unknown, variants, strict=True):
            self._known[alike[0].shape, most] = self._choose(context.runtime, found)
        if unknown:
            choices = [Choice(*key, fastest) for key, fastest in self._known.items()]
            with contextlib.suppress(OSError):  # they are measured again
                write_file(self._path, msgspec.json.encode(choices))
        return self._known

    def _choose(self, runtime: Runtime, variants: dict[Variant, list[Launch]]) -> Variant | None:
        """Return the fastest variant; None if that is the first one, or hardly slower.

        Variants take turns, and the best round of each counts: another model may use the card for a while.
        """
        rates = dict.fromkeys(variants, 0.0)
        for _ in range(_ROUNDS):
            for variant, launches in variants.items():
                rates[variant] = max(rates[variant], self._measure(runtime, launches))
        first, best = next(iter(rates)), max(rates, key=rates.__getitem__)
        return best if rates[best] >= _LEAST_GAIN * rates[first] else None


def _classes(max_rows: int) -> Iterator[tuple[int, int]]:
    """Yield the row classes that a stage uses, each with the rows that it is measured with."""
    fewer = 0
    for most in ROW_CLASSES:
        if fewer < max_rows:
            yield most, 1 if most == FEW_ROWS else min(most, max_rows)
        fewer = most


def _by_shape(products: Iterable[Product]) -> list[list[Product]]:
    """Return the products that are large enough to be measured, those of a shape together."""
    found: dict[ProductShape, list[Product]] = {}
    for product in products:
        if _num_bytes(product) >= _FEWEST_BYTES:
            found.setdefault(product.shape, []).append(product)
    return list(found.values())


def _variants(context: Context, products: Sequence[Product], rows: int) -> dict[Variant, list[Launch]]:
    """Return the launches of products of one shape for each variant, that for an H100 first."""
    first, cycled = products[0], _cycled(products, rows)
    form, is_pair, int8 = first.form, first.is_pair, first.int8
    if is_few(first, rows, context.runtime.shared_bytes):
        counts = dict.fromkeys((geometry_of(form, is_pair=is_pair, int8=int8).launched, *_LAUNCHED))
        return {count: [few_rows_launch(context, one, rows, count) for one in cycled] for count in counts}
    tiles = tile_candidates(context.runtime, form, rows, first.tiles, int8=int8)
    return {
        tile: [launch for one in cycled for launch in tiled_launches(context, one, rows, tile)]
        for tile in tiles
    }


def _cycled(products: Sequence[Product], rows: int) -> list[Product]:
    """Return the products that are run in turn."""
    if rows > _MOST_CYCLED_ROWS:
        return list(products[:1])
    return list(products[: -(-_CACHE_BYTES // _num_bytes(products[0]))])


def _num_bytes(product: Product) -> int:
    return sum(matrix.size.num_bytes for matrix in product.matrices)


def _measured(runtime: Runtime, launches: Sequence[Launch]) -> float:
    """Return how often launches run in a second."""

    def run() -> None:
        for launch in launches:
            runtime.launch(launch)

    return runs_per_s(runtime, run, _BUDGET_S)


def _digest(card: CardProperties) -> str:
    """Return what the speed of variants depends on, in short."""
    sources = ("gemv.cu", "gemm.cu", "gemm_warpgroup.cu", *compiler.header_names())
    facts = (card.uuid, [compiler.read_source(name) for name in sources])
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def _read(path: Path) -> list[Choice]:
    """Return what a file keeps; nothing if there is none that can be used."""
    try:
        return msgspec.json.decode(read_file(path) or b"[]", type=prepared(list[Choice]))
    except msgspec.MsgspecError:
        return []
