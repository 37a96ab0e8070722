"""Workloads for each integer format: matrices of several shapes, a head, tables, whole programs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from llmd.api import (
    HIDDEN,
    INTEGER_FORMATS,
    OWN_FORMATS,
    Activate,
    Add,
    Embed,
    EmbedPosition,
    EmbedTokenType,
    Format,
    Glu,
    Head,
    Linear,
    Op,
    TensorRef,
)
from llmd.api.integer_formats import ROW_ACTIVATION_GROUP
from llmd.api.ops import FACTOR_OPS, TABLE_OPS
from llmd.testing import latent_cases
from llmd.testing.expert_cases import integer_case
from llmd.testing.op_cases import embed_case, head_case, part_case
from llmd.testing.plans import TinyModel
from llmd.testing.workload import Workload

_VOCAB = 131
_CONTEXT = 256
_IN_PROGRAMS: tuple[Format, ...] = ("q8_row", "q4", "q3_g32_sym", "q2_g128", "q4_0", "q6_k", "mxfp4")
_OF_HEADS: tuple[Format, ...] = ("q8", "q4", "q6_k")
_TIED: tuple[Format, ...] = ("q8_0", "q6_k")
_WHOLE_BLOCKS = TinyModel(layers=2, hidden=256, head_dim=64, ffn=512)


def format_cases() -> Iterator[Workload]:
    """Yield the cases of every integer format. Rows end in a short group if the format allows it."""
    for name in INTEGER_FORMATS:
        narrow, wide = (100, 512) if _has_short_groups(name) else (256, 512)
        ops = _linear_ops(narrow, wide)
        # After a float32 rounding difference in one matrix, the next may round an activation to the
        # neighbouring code.
        yield part_case(f"linear/{name}", ops, name, max_nmse=1e-7, width=narrow)
        if narrow != _block_len(name):
            yield _narrow_case(name)
        yield integer_case(name, narrow, 72 if _has_short_groups(name) else 256)
        if name in _OF_HEADS:
            yield latent_cases.integer_case(name, narrow)
        yield part_case(f"zeros/{name}", _ops_of_zeros(512), name, max_nmse=1e-7, width=512)
        head = Head(HIDDEN, TensorRef("head", (_VOCAB, narrow)))
        yield head_case(f"head/{name}", head, name, width=narrow)
        yield embed_case(f"embed/{name}", _embed(narrow), name, width=narrow)
    yield from _other_table_cases()
    yield from _column_cases()
    yield from _program_cases()


def _block_len(name: Format) -> int:
    """Return the length of the shortest row without a short group."""
    form = INTEGER_FORMATS[name]
    return form.coarse_size or form.group_size or ROW_ACTIVATION_GROUP


def _narrow_case(name: Format) -> Workload:
    """Return a case with rows of one and three blocks; or, if rows may have any length, of 1 and a block ± 1
    inputs.
    """
    block = _block_len(name)
    widths = (1, block - 1, block + 1) if _has_short_groups(name) else (block, 3 * block)
    ops: list[Op] = []
    for width in widths:
        there, back = TensorRef(f"there{width}", (width, block)), TensorRef(f"back{width}", (block, width))
        ops += [
            Linear(HIDDEN, (f"a{width}",), (there,), (None,)),
            Linear(f"a{width}", (f"b{width}",), (back,), (None,)),
        ]
    total = f"b{widths[0]}"
    for width in widths[1:]:
        ops.append(Add(total, f"b{width}", f"sum{width}"))
        total = f"sum{width}"
    ops.append(Add(total, HIDDEN, HIDDEN))
    return part_case(f"linear/{name}-narrow", tuple(ops), name, max_nmse=1e-7, width=block)


def _has_short_groups(name: Format) -> bool:
    """Whether rows may have any length: true of llmd's own formats with one level of scales."""
    return name in OWN_FORMATS and not INTEGER_FORMATS[name].coarse_size


def _embed(width: int) -> Embed:
    return Embed(HIDDEN, TensorRef("table", (_VOCAB, width)), scale=2.5)


def _other_table_cases() -> Iterator[Workload]:
    """Yield cases of a table of positions, which starts within its tensor, and of token types."""
    positions = TensorRef("positions", (_CONTEXT + 2, 256), rows=(2, _CONTEXT + 2))
    types = TensorRef("types", (2, 256))
    for op in (EmbedPosition(HIDDEN, positions), EmbedTokenType(HIDDEN, types)):
        yield embed_case(f"{op.kind}/q6_k", op, "q6_k", width=256)


def _column_cases() -> Iterator[Workload]:
    """Yield columns of tables: one begins and ends within a group, the other at those of blocks."""
    within = Embed(HIDDEN, TensorRef("table", (_VOCAB, 200)), scale=2.5, columns=(50, 150))
    yield embed_case("embed/q8-columns", within, "q8", width=100)
    blocks = Embed(HIDDEN, TensorRef("table", (_VOCAB, 768)), columns=(256, 512))
    yield embed_case("embed/q6_k-columns", blocks, "q6_k", width=256)


def _linear_ops(narrow: int, wide: int) -> tuple[Op, ...]:
    """Return a matrix with a bias, one back to ``narrow``, and two slices of a tensor at odd offsets."""
    there, back = TensorRef("there", (wide, narrow)), TensorRef("back", (narrow, wide))
    cut = tuple(
        TensorRef("fused", (2 * narrow + 3, narrow), rows=(first, first + narrow))
        for first in (3, narrow + 3)
    )
    return (
        Linear(HIDDEN, ("a",), (there,), (TensorRef("there.bias", (wide,)),)),
        Linear("a", ("b",), (back,), (None,)),
        Linear(HIDDEN, ("c", "d"), cut, (None, TensorRef("d.bias", (narrow,)))),
        Add("c", "d", "e"),
        Add("b", "e", HIDDEN),
    )


def _ops_of_zeros(width: int) -> tuple[Op, ...]:
    """Return ops on a hidden state that is three quarters zero: skipping zeros must not change the result."""
    up, down = TensorRef("up", (width, width)), TensorRef("down", (width, width))
    return (
        Activate(HIDDEN, "half", "relu"),
        Linear(HIDDEN, ("u",), (up,), (None,)),
        Glu("u", "half", "few", "relu"),
        Linear("few", (HIDDEN,), (down,), (TensorRef("down.bias", (width,)),)),
    )


def _program_cases() -> Iterator[Workload]:
    """Yield whole small models, where an activation that rounds the other way affects the following ops."""
    for name in _IN_PROGRAMS:
        yield _program_case(f"program/{name}", _model(name), name)
    for name in _TIED:
        tied = _program_case(f"program/{name}-tied", msgspec.structs.replace(_model(name), tied=True), name)
        yield msgspec.structs.replace(tied, integer_ops=(*FACTOR_OPS, *TABLE_OPS))


def _model(name: Format) -> TinyModel:
    return TinyModel() if _has_short_groups(name) else _WHOLE_BLOCKS


def _program_case(label: str, model: TinyModel, name: Format) -> Workload:
    plan = model.plan()
    tokens = (tuple(range(3, 40)), (7,), tuple(range(60, 80)))
    return Workload(label, plan, 0, len(plan.parts), tokens, name, max_nmse=1e-4)
