"""Replace token ids that stand for tokens of the step before."""

from __future__ import annotations

import ctypes

from llmd_backend_cuda.outputs.layout import THREADS
from llmd_backend_cuda.runtime import KernelSpec, Launch, Runtime

FEED = KernelSpec.of("feed", "feed_tokens")


class FeedArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/feed.cu``."""

    _fields_ = (
        ("counts", ctypes.c_void_p),
        ("token_ids", ctypes.c_void_p),
        ("tokens", ctypes.c_void_p),
    )


def launch_feed(runtime: Runtime, counts: int, token_ids: int, tokens: int, max_rows: int) -> Launch:
    """Return the launch that replaces negative token ids (`Step.token_ids`) in place.

    ``counts`` and ``token_ids`` are addresses of the step (``struct Step``), ``tokens`` is
    `Outputs.tokens_pointer` of the ticket that the step is fed from. ``max_rows`` is the bucket of rows.
    """
    args = FeedArgs(counts, token_ids, tokens)
    kernel = runtime.kernel(FEED)
    return Launch(kernel, (-(-max_rows // THREADS), 1, 1), THREADS, args)
