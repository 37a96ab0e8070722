"""A plugin that imports its broken toolkit too early."""

from __future__ import annotations

LLMD_API = 2

raise RuntimeError("the toolkit was built for another driver")
