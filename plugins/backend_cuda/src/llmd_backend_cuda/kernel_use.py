"""What a stage says of its kernels."""

from __future__ import annotations

from collections.abc import Collection

from llmd.api.kernel_use import KernelUse, SlowPath
from llmd_backend_cuda.buckets import LARGEST_GRAPH
from llmd_backend_cuda.runtime import Graph


def kernel_use(graphs: Collection[Graph | None], *, streams: bool) -> KernelUse:
    """Return the kernels of a stage by its captured graphs; None: there was no memory for one.

    ``streams``: weights of some parts are streamed.
    """
    names = ["exact order of sums"]
    missing = sum(graph is None for graph in graphs)
    if missing < len(graphs) or not graphs:
        names.append(f"graphs up to {LARGEST_GRAPH} rows")
    if streams:
        names.append("streamed parts without graphs")
    if not missing:
        return KernelUse(tuple(names))
    what = (
        f"launches kernels one by one, because its memory had no room for {missing} of {len(graphs)} graphs"
    )
    fix = "lower --kv-memory, --slots or --max-ctx, and load the model again"
    return KernelUse(tuple(names), (SlowPath(what, fix),))
