"""Look up rows of a table: embed, embed_position and embed_token_type."""

from __future__ import annotations

from llmd.api.ops import Embed, EmbedPosition, EmbedTokenType
from llmd.api.program import SlottedOp
from llmd_backend_vulkan.commands import Dispatch, Shader
from llmd_backend_vulkan.context import Context, float_word

_INDEX = {Embed.kind: "token_ids", EmbedPosition.kind: "positions", EmbedTokenType.kind: "token_types"}
_ELEMENTS = 256


def embed(context: Context, slotted: SlottedOp) -> list[Dispatch]:
    """Return the dispatches of a lookup, one for each piece of the table."""
    op = slotted.op
    assert isinstance(op, Embed | EmbedPosition | EmbedTokenType)
    table, out = context.matrix(slotted.weights[0]), slotted.outputs[0]
    scale = op.scale if isinstance(op, Embed) else 1.0
    first, end = op.column_range if isinstance(op, Embed) else (0, table.width)
    shader = Shader("embed", (table.form.bits,))
    groups = (-(-(end - first) // _ELEMENTS), context.rows, 1)
    return [
        Dispatch(
            shader,
            (context.work, piece.region.buffer),
            (
                context.counts, context.place(_INDEX[op.kind]), context.slots[out], context.stride(out), end - first,
                first, piece.low_at, table.row_words, piece.first, piece.num_rows, float_word(scale),
            ),
            groups,
        )
        for piece in table.pieces
    ]  # fmt: skip
