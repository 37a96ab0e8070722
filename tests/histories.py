"""How many generated histories a property is tried with: 100, or what ``LLMD_TEST_SCHEDULES`` says."""

from __future__ import annotations

import os

import pytest

EXAMPLES = int(os.environ.get("LLMD_TEST_SCHEDULES", "100"))
# A history takes some hundredths of a second; shrinking a failure takes longer than finding it.
timeout = pytest.mark.timeout(60 + EXAMPLES)
