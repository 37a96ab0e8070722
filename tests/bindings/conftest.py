"""The library built from its sources, and daemons to use it with."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator

import pytest

from llmd.api.errors import NotFoundError
from tests.bindings.building import HERE, Library, Probe, build_library
from tests.serving.home import LLMD, Home, make_home
from tests.serving.model import write_embedding_model, write_model
from tests.serving.running import EMBEDDER, MODEL, RunningDaemon, directories_below, running_daemon


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return build_library(tmp_path_factory.mktemp("libllmd"))


@pytest.fixture(scope="session")
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """No variable of llmd, and a home in which no daemon listens."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LLMD_", "XDG_"))}
    return kept | {"HOME": str(tmp_path_factory.mktemp("nobody"))}


@pytest.fixture(scope="session")
def probe(library: Library, clean_environment: dict[str, str]) -> Probe:
    return Probe((str(library.program(HERE / "probe.c")),), clean_environment)


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon with a model that generates and one that embeds, for tests that do not stop it."""
    directories = directories_below(tmp_path_factory.mktemp("daemon"))
    write_model(directories.models / MODEL)
    write_embedding_model(directories.models / EMBEDDER)
    with running_daemon(directories) as running:
        yield running


@pytest.fixture(scope="session")
def address(daemon: RunningDaemon) -> str:
    return f"unix:{daemon.socket}"


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The folders of a user who runs ``llmd``, which is on the PATH."""
    folder = tmp_path_factory.mktemp("home")
    home = make_home(folder, tmp_path_factory.mktemp("probes"))
    (folder / "bin").mkdir()
    script = folder / "bin" / "llmd"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(LLMD)} "$@"\n')
    script.chmod(0o755)
    home.environment["PATH"] = f"{script.parent}:{os.environ['PATH']}"
    return home


@pytest.fixture
def host(daemon: RunningDaemon) -> dict[str, str]:
    """Variables with which an example finds a daemon, of which one model is loaded: again, if it was idle for
    the time after which models are unloaded.
    """
    client = daemon.client()
    list(client.load(MODEL))  # until it has been loaded
    with contextlib.suppress(NotFoundError):
        client.stop(EMBEDDER)
    return {"LLMD_HOST": f"unix:{daemon.socket}"}
