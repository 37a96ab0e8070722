"""Everything after the logits: edits, masks, candidates, sums, and tokens that are drawn on the device."""

from llmd_backend_cuda.outputs.feed import FEED, launch_feed
from llmd_backend_cuda.outputs.outputs import FINISH, SCAN, Outputs

KERNELS = (SCAN, FINISH, FEED)
"""What is compiled for any stage with a head."""

__all__ = ["KERNELS", "Outputs", "launch_feed"]
