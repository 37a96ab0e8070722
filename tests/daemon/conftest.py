"""A model hub on this machine, for every test that pulls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serving.hub import Hub, running_hub


@pytest.fixture(scope="session")
def running_hub_of_tests() -> Iterator[Hub]:
    with running_hub() as hub:
        yield hub


@pytest.fixture
def hub(running_hub_of_tests: Hub, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """A model hub that has nothing yet and misbehaves in no way; nobody has a token for it."""
    for variable in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_TOKEN_PATH", "/nowhere")
    running_hub_of_tests.reset()
    return running_hub_of_tests
