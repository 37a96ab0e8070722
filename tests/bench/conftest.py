"""The same Vulkan device as in the tests of its backend."""

from __future__ import annotations

from tests.plugins.backend_vulkan.conftest import physical

__all__ = ["physical"]
