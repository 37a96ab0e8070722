"""Engines for golden tests: the architectures and devices that are installed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from llmd.engine.composition import device_opener, make_host
from llmd.engine.loading import OpenDevice
from llmd.host.plugin_host import PluginHost
from tests.golden.checkpoint import write_checkpoint
from tests.golden.engines import Architectures
from tests.golden.models.tiny import TinyModel

collect_ignore = [] if os.environ.get("LLMD_TEST_MODEL") else ["test_user_model.py"]


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> PluginHost:
    return make_host(tmp_path_factory.mktemp("probes"))


@pytest.fixture(scope="session")
def architectures(host: PluginHost) -> Architectures:
    return host.architectures()


@pytest.fixture(scope="session")
def open_device(host: PluginHost) -> OpenDevice:
    return device_opener(host)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[TinyModel], Path]:
    """Writes the checkpoint of a case, once."""
    root = tmp_path_factory.mktemp("tiny-models")

    def write(case: TinyModel) -> Path:
        directory = root / case.name
        return directory if directory.exists() else write_checkpoint(case, directory)

    return write
