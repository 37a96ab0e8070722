"""A tiny model, its text files, and one daemon shared by all tests that do not break it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llmd.chat.model_text import ModelText, load_model_text
from llmd.chat.templates.renderer import TemplateRenderer
from tests.serving.model import write_embedding_model, write_model
from tests.serving.running import EMBEDDER, MODEL, RunningDaemon, directories_below, running_daemon


@pytest.fixture(scope="session")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shared cache of device probes, so that only the first engine waits for them."""
    return tmp_path_factory.mktemp("probes")


@pytest.fixture(scope="session")
def model_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / MODEL)


@pytest.fixture(scope="session")
def text(model_directory: Path) -> Iterator[ModelText]:
    with TemplateRenderer() as renderer:
        yield load_model_text(model_directory, renderer)


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory, probes: Path) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path_factory.mktemp("server"), cache=probes)
    write_model(directories.models / MODEL)
    write_model(directories.models / "other", seed=5)
    with running_daemon(directories, aliases={"gpt-4o": MODEL}, max_body=200_000) as running:
        yield running


@pytest.fixture(scope="session")
def embedder(tmp_path_factory: pytest.TempPathFactory, probes: Path) -> Iterator[RunningDaemon]:
    """A daemon with an embedding model loaded and a generating model in its store."""
    directories = directories_below(tmp_path_factory.mktemp("embedder"), cache=probes)
    write_embedding_model(directories.models / EMBEDDER)
    write_model(directories.models / MODEL)
    with running_daemon(directories, models=(EMBEDDER,)) as running:
        yield running
