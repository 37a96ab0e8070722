"""Time inside the device and around it is measured separately."""

from __future__ import annotations

import pytest

from bench import host_share
from llmd.builtin.reference.device import ReferenceDevice
from tests.serving.cores import make_core


def test_the_reference_takes_more_than_the_loop_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_share, "STREAMS", 2)
    monkeypatch.setattr(host_share, "STEPS", 5)
    monkeypatch.setattr(host_share, "CONTEXT_LEN", 100)
    loop, device = host_share.decode_ms(make_core(ReferenceDevice(), depth=1, slots=2))
    assert 0 < loop < device
