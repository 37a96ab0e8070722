"""The same models as in golden tests."""

from __future__ import annotations

from tests.golden.conftest import architectures, checkpoint, host

__all__ = ["architectures", "checkpoint", "host"]
