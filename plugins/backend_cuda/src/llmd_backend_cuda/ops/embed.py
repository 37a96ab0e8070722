"""Look up rows of a table: embed, embed_position and embed_token_type."""

from __future__ import annotations

import ctypes
import math
from typing import Literal

import msgspec

from llmd.api.ops import Embed, EmbedPosition, EmbedTokenType
from llmd.api.program import SlottedOp
from llmd_backend_cuda.context import Context
from llmd_backend_cuda.runtime import KernelSpec, Launch

TableFormat = Literal["f32", "f16", "bf16"]
"""How a table is stored."""

FORMATS: dict[TableFormat, int] = {"f32": 0, "f16": 1, "bf16": 2}
"""The macro ``FORMAT`` of ``kernels/stored.cuh``."""
ITEM_BYTES: dict[TableFormat, int] = {"f32": 4, "f16": 2, "bf16": 2}
"""Bytes of an element."""
_THREADS = 256


class Table(msgspec.Struct, frozen=True):
    """A table ``[entries, width]`` in the device's memory, row-major without padding."""

    pointer: int
    """Address of the first entry that index 0 means."""
    format: TableFormat

    def from_column(self, column: int) -> Table:
        """Return the table whose entries begin at a column of these."""
        return Table(self.pointer + column * ITEM_BYTES[self.format], self.format)


class EmbedArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/embed.cu``."""

    _fields_ = (
        ("index", ctypes.c_void_p),
        ("fed", ctypes.c_void_p),
        ("table", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("scale", ctypes.c_double),
        ("width", ctypes.c_int32),
        ("entry_width", ctypes.c_int32),
    )


def launch_embed(context: Context, slotted: SlottedOp, rows: int, table: Table) -> Launch:
    """Return the launch that writes ``[rows, width]`` of the op's slot."""
    op = slotted.op
    assert isinstance(op, Embed | EmbedPosition | EmbedTokenType)
    out = slotted.outputs[0]
    width, entry_width = context.program.slot_widths[out], op.table.view_shape[1]
    scale = op.scale if isinstance(op, Embed) else 1.0
    if isinstance(op, Embed):
        table = table.from_column(op.column_range[0])
    vector = vector_of(math.gcd(width, entry_width), table)
    defines = {"FORMAT": FORMATS[table.format], "VECTOR": vector, "SCALED": int(scale != 1.0)}
    kernel = context.runtime.kernel(KernelSpec.of("embed", "embed", defines))
    args = EmbedArgs(
        _index(context, op), context.step.fed, table.pointer, context.slot(out), scale, width, entry_width
    )
    return Launch(kernel, (rows, -(-width // (vector * _THREADS)), 1), _THREADS, args)


def _index(context: Context, op: Embed | EmbedPosition | EmbedTokenType) -> int:
    """Return the address of the table's index for each row."""
    match op:
        case Embed():
            address = context.step.token_ids
        case EmbedPosition():
            address = context.step.positions
        case EmbedTokenType():
            address = context.step.token_types
    return int(address or 0)


def vector_of(width: int, table: Table) -> int:
    """Return how many elements are read at once: four if each row begins at a multiple of them."""
    return 1 if width % 4 or table.pointer % (4 * ITEM_BYTES[table.format]) else 4
