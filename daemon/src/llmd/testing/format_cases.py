"""Workloads for each integer format: several shapes of matrices, a head, activations as they are, and whole programs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from llmd.api import HIDDEN, INTEGER_FORMATS, OWN_FORMATS, Add, Format, Head, Linear, Op, TensorRef
from llmd.testing.op_cases import head_case, part_case
from llmd.testing.plans import TinyModel
from llmd.testing.workload import Workload

_VOCAB = 131
_IN_PROGRAMS: tuple[Format, ...] = ("q8_row", "q4", "q3_g32_sym", "q2_g128", "q4_0", "q6_k", "mxfp4")
_WHOLE_BLOCKS = TinyModel(layers=2, hidden=256, head_dim=64, ffn=512)


def format_cases() -> Iterator[Workload]:
    """Yield the cases of every integer format. A row may end in a short group where no file or second level cuts blocks."""
    for name in INTEGER_FORMATS:
        narrow, wide = (100, 384) if _has_short_groups(name) else (256, 512)
        ops = _linear_ops(narrow, wide)
        exact = part_case(f"linear/{name}-activations-f32", ops, name, max_nmse=1e-9, width=narrow)
        yield msgspec.structs.replace(exact, activations="f32")
        # What one matrix leaves a float32 rounding apart, the next may round to the neighbouring code.
        yield msgspec.structs.replace(exact, name=f"linear/{name}", max_nmse=1e-7)
        head = Head(HIDDEN, TensorRef("head", (_VOCAB, narrow)))
        yield head_case(f"head/{name}", head, name, width=narrow)
    yield from _program_cases()


def _has_short_groups(name: Format) -> bool:
    """Whether rows of the format may have any length: those of one level that no file cuts into blocks."""
    return name in OWN_FORMATS and not INTEGER_FORMATS[name].coarse_size


def _linear_ops(narrow: int, wide: int) -> tuple[Op, ...]:
    """A matrix with a bias, one from wide back to narrow, and two cut from one tensor, not at a multiple of anything."""
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


def _program_cases() -> Iterator[Workload]:
    """Whole small models: an activation may round the other way, and what follows sees it."""
    for name in _IN_PROGRAMS:
        plan = (TinyModel() if _has_short_groups(name) else _WHOLE_BLOCKS).plan()
        tokens = (tuple(range(3, 40)), (7,), tuple(range(60, 80)))
        case = Workload(f"program/{name}", plan, 0, len(plan.parts), tokens, name, max_nmse=1e-4)
        yield case
        if name in {"q4", "q3_g32_sym"}:
            yield msgspec.structs.replace(
                case, name=f"program/{name}-activations-f32", activations="f32", max_nmse=1e-9
            )
