"""The entry point; tests/conformance/transports tests what it returns."""

from __future__ import annotations

import sys

import pytest

from llmd.api import LinkError
from llmd_transport.local import llmd_transports


def test_other_systems_are_refused_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    (transport,) = llmd_transports()
    monkeypatch.setattr(sys, "platform", "darwin")
    for call in (lambda: transport.listen("local://"), lambda: transport.connect("local://name", 1.0)):
        with pytest.raises(LinkError, match="need Linux") as caught:
            call()
        assert caught.value.hint
