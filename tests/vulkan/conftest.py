"""The same device as in the tests of the backend."""

from __future__ import annotations

from tests.plugins.backend_vulkan.conftest import check, device, physical, plain_device

__all__ = ["check", "device", "physical", "plain_device"]
