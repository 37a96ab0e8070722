"""Launches that multiply rows by matrices: linear ops and the head, with what precedes and follows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from llmd.api import Experts, Glu, Head, HeadLinear, Linear, Norm, Program, SlottedOp, StageLimits
from llmd.api.activations import ACTIVATIONS
from llmd_backend_cuda.context import Context
from llmd_backend_cuda.matrices import DeviceMatrix
from llmd_backend_cuda.matrix_forms import CHUNK, TILE, MatrixForm
from llmd_backend_cuda.ops.elementwise import limit_of
from llmd_backend_cuda.ops.fastest import FEW_ROWS, ProductShape, row_class
from llmd_backend_cuda.ops.gemm_tiles import (
    MOST_ROWS_OF_BLOCK,
    SLICES,
    TILES_OF_BLOCK,
    GemmTile,
    can_use,
    choose_tile,
    num_blocks,
    row_stride,
    rows_defines,
)
from llmd_backend_cuda.ops.product_args import (
    MATRICES,
    ExpertGateArgs,
    GemmArgs,
    GemvArgs,
    OutputArgs,
    RoundArgs,
    RowsArgs,
)
from llmd_backend_cuda.runtime import KernelSpec, Launch

_FEW_ROWS_SHARED_BYTES = 96 << 10
"""Rows that need more shared memory than this, or than the card has, are multiplied like many rows."""

_STATIC_SHARED_BYTES = 8 << 10
"""Shared memory that the kernel for few rows has besides its rows."""


class Groups(msgspec.Struct, frozen=True):
    """Rows that are grouped by expert on the device, as ``kernels/experts.cuh`` describes."""

    pointer: int
    """Address of the groups."""
    most: int
    """Most groups of a step."""
    blocks: int = 0
    """Address of the address of each expert's block, which matrices are in; 0: they are stacks."""


class Product(msgspec.Struct):
    """Rows times matrices of one form."""

    rows: RowsArgs
    outputs: list[OutputArgs]
    matrices: list[DeviceMatrix]
    is_pair: bool = False
    """The output is ``activation(first) * second``."""
    int8: bool = False
    """Rows are rounded to int8, else to float16."""
    groups: Groups | None = None
    """Each group of rows is multiplied by the matrices of one expert: members of stacks, or in a block."""
    gate: ExpertGateArgs | None = None
    """What a pair of experts is gated with."""
    heads: int = 0
    """Matrices are stacks: a row of the step has as many slices, each for one matrix. 0: they are not."""

    @property
    def form(self) -> MatrixForm:
        """The form of all matrices."""
        return self.matrices[0].size.form

    @property
    def chunks(self) -> int:
        """Chunks of a row."""
        return self.matrices[0].size.chunks

    @property
    def tiles(self) -> tuple[int, ...]:
        """Tiles of 16 weight rows of each matrix."""
        return tuple(matrix.size.tiles for matrix in self.matrices)

    @property
    def shape(self) -> ProductShape:
        """What its speed depends on."""
        return ProductShape(self.form, self.chunks, self.tiles, self.is_pair, self.int8)

    @property
    def shared_bytes_of_row(self) -> int:
        """Bytes of a row in shared memory, if few rows are multiplied."""
        return row_stride(self.chunks, int8=self.int8)


def rows_of(context: Context, x: int, norm: SlottedOp | None = None) -> RowsArgs:
    """Return the rows of slot ``x``; with a ``norm`` of whole rows (rms), what it makes of them."""
    width = context.program.slot_widths[x]
    if norm is None:
        return RowsArgs(x=context.slot(x), width=width)
    assert isinstance(norm.op, Norm), "the first op of a norm and linear instruction"
    return RowsArgs(
        x=context.slot(x),
        width=width,
        norm=1,
        gain=context.vector(norm.weights[0]),
        eps=norm.op.eps,
        offset=norm.op.offset,
    )


def products_of(context: Context, slotted: SlottedOp, rows: RowsArgs) -> list[Product]:
    """Return a linear op as products, each of at most `MATRICES` matrices of one form."""
    assert isinstance(slotted.op, Linear), "a linear op"
    parts = zip(slotted.outputs, slotted.weights[0::2], slotted.weights[1::2], strict=True)
    single = [_single_product(context, rows, *part) for part in parts]
    products: list[Product] = []
    for _, found in groupby(single, key=lambda product: product.form):
        alike = list(found)
        products += [joined(alike[first : first + MATRICES]) for first in range(0, len(alike), MATRICES)]
    return products


def with_residual(context: Context, product: Product, residual: int, out: int, scale: float) -> Product:
    """Return a product of one matrix that is added to slot ``residual`` and written to slot ``out``."""
    output = product.outputs[0]
    output.out, output.residual, output.scale = context.slot(out), context.slot(residual), scale
    return product


def gated(context: Context, product: Product, glu: SlottedOp) -> Product:
    """Return the product of a gate and an up matrix as their gated product."""
    assert isinstance(glu.op, Glu), "the last op of a gated feed-forward"
    gate = product.outputs[0]
    gate.out = context.slot(glu.outputs[0])
    gate.activation, gate.threshold = ACTIVATIONS.index(glu.op.activation), glu.op.threshold
    gate.limit = limit_of(glu.op)
    return Product(product.rows, product.outputs, product.matrices, is_pair=True, int8=product.int8)


def head_product(context: Context, slotted: SlottedOp, logits: int) -> Product:
    """Return the head as a product of the chosen rows.

    ``logits`` is the address of float32 ``[max_outputs, vocab]``.
    """
    assert isinstance(slotted.op, Head), "the head"
    matrix = matrix_of(context, slotted.weights[0])
    rows = rows_of(context, slotted.inputs[0])
    rows.chosen = context.step.output_rows
    output = OutputArgs(
        out=logits,
        bias=context.vector(slotted.weights[1]),
        scale=slotted.op.scale,
        softcap=slotted.op.softcap or 0.0,
        width=matrix.size.out,
        tiles=matrix.size.tiles,
    )
    return Product(rows, [output], [matrix], int8=rounds_to_int8(context, matrix))


def is_few(product: Product, rows: int, shared_bytes: int) -> bool:
    """Return whether a product of ``rows`` rows is one launch, which can also norm rows and pair matrices.

    ``shared_bytes`` is `Runtime.shared_bytes`.
    """
    most = min(_FEW_ROWS_SHARED_BYTES, shared_bytes - _STATIC_SHARED_BYTES)
    return rows <= FEW_ROWS and rows * product.shared_bytes_of_row <= most


def launch_product(context: Context, product: Product, rows: int) -> Iterator[Launch]:
    """Yield the launches of a product of ``rows`` rows; a pair must be of `is_few` rows."""
    fastest = context.fastest.get((product.shape, row_class(rows)))
    if is_few(product, rows, context.runtime.shared_bytes):
        yield few_rows_launch(context, product, rows, fastest if isinstance(fastest, int) else None)
        return
    assert not product.is_pair, "pairs are for few rows"
    if (
        fastest is None
        or isinstance(fastest, int)
        or not can_use(fastest, context.runtime, rows, product.tiles)
    ):
        fastest = choose_tile(context.runtime, product.form, rows, product.tiles, int8=product.int8)
    yield from tiled_launches(context, product, rows, fastest)


def few_rows_launch(context: Context, product: Product, rows: int, launched: int | None = None) -> Launch:
    """Return the launch of a product of few rows.

    ``launched`` is the most blocks for each processor; None: as on an H100.
    """
    items = product.tiles[0] if product.is_pair else sum(product.tiles)
    args = GemvArgs(x=product.rows, num_rows=rows, num_items=items)
    _fill(args, product)
    if product.gate is not None:
        args.gate = product.gate
    spec = gemv_spec(product.form, is_pair=product.is_pair, int8=product.int8)
    kernel = context.runtime.kernel(_of_product(spec, product))
    if launched is None:
        launched = geometry_of(product.form, is_pair=product.is_pair, int8=product.int8).launched
    groups = (product.heads or 1) if product.groups is None else product.groups.most
    blocks = min(items, -(-launched * context.runtime.num_processors // groups))
    shared = rows * product.shared_bytes_of_row
    return Launch(kernel, (blocks, groups, 1), 32 * SLICES, args, shared, overlaps=True)


def tiled_launches(context: Context, product: Product, rows: int, tile: GemmTile) -> Iterator[Launch]:
    """Yield the launches of a product of many rows with a tile; with groups, ``rows`` are assigned rows.

    With heads or groups, the tile must not be split.
    """
    runtime = context.runtime
    assert context.rounded is not None, "allocated by the stage"
    assert context.partials is not None, "allocated by the stage"
    round_args = RoundArgs(
        x=product.rows,
        out=context.rounded.pointer,
        padded_width=CHUNK * product.chunks,
        in_product_order=tile.in_product_order,
        group=product.form.activation_group,
    )
    round_spec = ROUND_INT8_SPEC if product.int8 else ROUND_SPEC
    slices = rows * (product.heads or 1)
    yield Launch(runtime.kernel(round_spec), (slices, 1, 1), 256, round_args, overlaps=True)
    args = GemmArgs(
        x=context.rounded.pointer,
        num_rows=rows,
        num_columns=sum(matrix.size.out for matrix in product.matrices),
        partials=context.partials.pointer,
    )
    _fill(args, product)
    spec = _of_product(tile.spec(product.form), product)
    blocks = -(-rows // tile.rows) * (product.heads or 1)
    if product.groups is not None:
        blocks = product.groups.most
    of_weights = num_blocks(tile, tile.rows, product.tiles)
    grid = (blocks, of_weights, SLICES if tile.split else 1)
    yield Launch(runtime.kernel(spec), grid, tile.threads, args, tile.shared_bytes, overlaps=True)
    if tile.split:
        adding = runtime.kernel(KernelSpec(spec.source, "add_slices", spec.defines))
        yield Launch(adding, (-(-args.num_columns // 256), rows, 1), 256, args, overlaps=True)


def _of_product(spec: KernelSpec, product: Product) -> KernelSpec:
    """Return a kernel's variant for the groups or heads of a product."""
    if product.groups is None and not product.heads:
        return spec
    macros = {"HEADS" if product.heads else "EXPERTS": 1}
    if product.groups is not None and product.groups.blocks:
        macros["CACHED"] = 1
    return KernelSpec.of(spec.source, spec.name, dict(spec.defines) | macros)


def partial_bytes(limits: StageLimits, num_processors: int) -> int:
    """Return the bytes of `Context.partials`: sums of slices, where blocks are fewer than processors.

    A block has at most `MOST_ROWS_OF_BLOCK` rows.
    """
    rows = min(_most_rows(limits), MOST_ROWS_OF_BLOCK)
    return SLICES * rows * num_processors * TILES_OF_BLOCK * TILE * 4


def rounded_bytes(program: Program, limits: StageLimits) -> int:
    """Return the bytes of `Context.rounded`."""
    widths = [w.ref.view_shape[1] for w in program.weights if len(w.ref.view_shape) == 2]
    bytes_of_rows = [2 * _most_rows(limits) * padded_width(max(widths, default=1))]
    for slotted in program.ops:
        if isinstance(slotted.op, Experts):
            width = max(slotted.op.down.view_shape[1:])
            bytes_of_rows.append(2 * limits.max_rows * slotted.op.top_k * padded_width(width))
        if isinstance(slotted.op, HeadLinear):
            heads, _, width = slotted.op.weight.view_shape
            bytes_of_rows.append(2 * limits.max_rows * heads * padded_width(width))
    return max(bytes_of_rows)


def padded_width(width: int) -> int:
    """Return the elements of a row with the padding of its last chunk."""
    return -(-width // CHUNK) * CHUNK


def _most_rows(limits: StageLimits) -> int:
    """Return the most rows of a product; those of the head are output rows."""
    return max(limits.max_rows, limits.max_outputs)


ROUND_SPEC = KernelSpec.of("round_rows", "round_rows")
ROUND_INT8_SPEC = KernelSpec.of("round_rows", "round_rows_int8")


class Geometry(msgspec.Struct, frozen=True):
    """How the kernel for few rows uses a card. Measured on an H100."""

    depth: int
    """Chunks that a warp has in flight."""
    resident: int
    """Blocks that a processor has registers for."""
    launched: int
    """Blocks that are launched for each processor, if there are as many tiles."""


def geometry_of(form: MatrixForm, *, is_pair: bool, int8: bool = False) -> Geometry:
    """Return the geometry for matrices of a form, and rows that are ``int8`` (not measured) or float16."""
    if form.bits == 16:
        return Geometry(1, 2, 2) if is_pair else Geometry(2, 2, 2)
    # Minimums take registers, too, and so do scales of rows, and several scales of a chunk with int8: sm_120
    # would spill.
    several = int(int8 and form.has_several_scales)
    if form.bits == 8:
        return Geometry(3 - int(form.fp8), 2, 2) if is_pair else Geometry(3 - several, 3, 3)
    depth = 3 - int(form.minimum)
    if not is_pair:
        return Geometry(depth + 1 - several, 2, 3)
    if form.bits == 3 and form.minimum and not form.scale_bits:
        return Geometry(depth - 1, 2, 2)
    return Geometry(depth, 1, 1) if several and form.group == 16 else Geometry(depth, 2, 2)


def gemv_spec(form: MatrixForm, *, is_pair: bool, int8: bool = False) -> KernelSpec:
    """Return the kernel for few rows; they are ``int8`` or float16."""
    geometry = geometry_of(form, is_pair=is_pair, int8=int8)
    macros = {"PAIR": int(is_pair), "DEPTH": geometry.depth, "BLOCKS": geometry.resident}
    return KernelSpec.of("gemv", "gemv", form.defines | macros | rows_defines(int8=int8))


def matrix_of(context: Context, index: int | None) -> DeviceMatrix:
    matrix = None if index is None else context.matrices[index]
    assert matrix is not None, "factors are loaded as matrices"
    return matrix


def _single_product(
    context: Context, rows: RowsArgs, out: int, weight: int | None, bias: int | None
) -> Product:
    matrix = matrix_of(context, weight)
    output = OutputArgs(
        out=context.slot(out),
        bias=context.vector(bias),
        scale=1.0,
        width=matrix.size.out,
        tiles=matrix.size.tiles,
    )
    return Product(rows, [output], [matrix], int8=rounds_to_int8(context, matrix))


def rounds_to_int8(context: Context, matrix: DeviceMatrix) -> bool:
    """Return whether rows are rounded to int8 before they are multiplied by a matrix."""
    return context.program.activations == "int8" and matrix.size.form.is_integer


def joined(products: Sequence[Product]) -> Product:
    """Return products of the same rows as one."""
    first = products[0]
    outputs = [output for product in products for output in product.outputs]
    matrices = [matrix for product in products for matrix in product.matrices]
    return Product(first.rows, outputs, matrices, int8=first.int8)


def _fill(args: GemvArgs | GemmArgs, product: Product) -> None:
    args.groups = None if product.groups is None else product.groups.pointer
    args.blocks = None if product.groups is None else product.groups.blocks
    args.heads = product.heads
    for place, (output, matrix) in enumerate(zip(product.outputs, product.matrices, strict=True)):
        args.outputs[place] = output
        args.matrices[place] = matrix.args
