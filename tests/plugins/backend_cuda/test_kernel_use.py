"""What a stage says of its kernels."""

from __future__ import annotations

from llmd_backend_cuda.kernel_use import kernel_use
from tests.cuda.simt.runtime import SimtGraph, SimtRuntime


def test_graphs_are_named_and_missing_ones_are_slow() -> None:
    graph = SimtGraph(SimtRuntime(), [])
    for graphs in ([], [graph]):
        use = kernel_use(graphs, streams=False)
        assert (use.names, use.slow) == (("exact order of sums", "graphs up to 64 rows"), ())
    (path,) = kernel_use([graph, None], streams=False).slow
    assert path.what.endswith("because its memory had no room for 1 of 2 graphs")
    assert "graphs up to 64 rows" not in kernel_use([None], streams=False).names
    assert kernel_use([], streams=True).names[-1] == "streamed parts without graphs"
