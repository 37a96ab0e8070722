"""One module per op of `llmd.api.ops`. The device does not support ops that are missing from the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from llmd.api import Add, Attention, Embed, Glu, Head, Linear, Norm, Program, Rope, SlottedOp, WeightData
from llmd_backend_example.kernels.add import load_add
from llmd_backend_example.kernels.attention import load_attention
from llmd_backend_example.kernels.embed import load_embed
from llmd_backend_example.kernels.glu import load_glu
from llmd_backend_example.kernels.head import load_head
from llmd_backend_example.kernels.kernel import Kernel
from llmd_backend_example.kernels.linear import load_linear
from llmd_backend_example.kernels.norm import load_norm
from llmd_backend_example.kernels.rope import load_rope

LoadKernel = Callable[[SlottedOp, Sequence[WeightData | None], Program], Kernel]
"""Makes a kernel, given an op, its weights in the order of ``op.tensors``, and its program."""

KERNELS: Mapping[str, LoadKernel] = {
    Embed.kind: load_embed,
    Norm.kind: load_norm,
    Linear.kind: load_linear,
    Rope.kind: load_rope,
    Attention.kind: load_attention,
    Glu.kind: load_glu,
    Add.kind: load_add,
    Head.kind: load_head,
}
