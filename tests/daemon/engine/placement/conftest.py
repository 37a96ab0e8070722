from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llmd.api.messages import Load
from llmd.engine.composition import make_host
from llmd.models.open_model import OpenModel, open_model
from tests.serving.model import write_model


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    directory = write_model(tmp_path_factory.mktemp("models") / "m", context_len=1024)
    return Load(str(directory), kv_dtype="f16", slots=2)


@pytest.fixture(scope="module")
def model(load: Load, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenModel]:
    host = make_host(tmp_path_factory.mktemp("probes"))
    opened = open_model(Path(load.directory), host.architectures())
    yield opened
    opened.checkpoint.close()
