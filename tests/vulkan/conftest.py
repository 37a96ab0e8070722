"""The same device as in the tests of the backend, and the same models as in golden tests."""

from __future__ import annotations

from tests.golden.conftest import architectures, checkpoint, host
from tests.plugins.backend_vulkan.conftest import arena, check, device, physical, plain_device, runtime

__all__ = [
    "architectures",
    "arena",
    "check",
    "checkpoint",
    "device",
    "host",
    "physical",
    "plain_device",
    "runtime",
]
