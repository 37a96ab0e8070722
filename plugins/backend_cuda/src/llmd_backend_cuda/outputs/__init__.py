"""Everything after the logits: edits, masks, candidates, sums, and tokens that are drawn on the device."""

from llmd_backend_cuda.outputs.outputs import FINISH, SCAN, Outputs

KERNELS = (SCAN, FINISH)
"""What is compiled for any stage with a head."""

__all__ = ["KERNELS", "Outputs"]
