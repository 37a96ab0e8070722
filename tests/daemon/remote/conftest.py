"""A reference device in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from llmd.builtin.reference.device import probe
from llmd.host.devices import DeviceState
from llmd.host.names import PluginName, discover
from llmd.remote.device import RemoteDevice
from tests.serving.apart import LOCAL, apart

OpenApart = Callable[..., RemoteDevice]


@pytest.fixture(scope="session")
def reference() -> DeviceState:
    plugin = next(one for one in discover() if one.name == "reference")
    return DeviceState(probe()[0], "reference", plugin, ok=True)


@pytest.fixture(scope="session")
def transport_plugin() -> PluginName:
    return LOCAL


@pytest.fixture
def open_here(reference: DeviceState) -> Iterator[OpenApart]:
    """Opens devices in processes of their own, which end after the test; by default the reference device."""
    with ExitStack() as stack:

        def opened(device: DeviceState = reference) -> RemoteDevice:
            found = apart(device)
            stack.callback(found.close)
            return found

        yield opened
