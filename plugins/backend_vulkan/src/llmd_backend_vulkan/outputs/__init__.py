"""From logits to candidates and tokens, on the device."""

from llmd_backend_vulkan.outputs.outputs import Outputs

__all__ = ["Outputs"]
