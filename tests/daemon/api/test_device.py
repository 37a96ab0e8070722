from __future__ import annotations

import numpy as np

from llmd.api import HostHidden


def test_hidden_states_in_host_memory_are_handed_on_without_a_copy() -> None:
    array = np.zeros((2, 3), np.float32)
    assert HostHidden(array).host() is array
