"""Every command that takes a model takes every kind of model, by each of its names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmd.builtin.guide import guide_directory
from llmd.cli.serve import named_models, read_aliases
from llmd.cli.service.served_models import check_serves
from llmd.config import load_settings
from llmd.registry.derived import DerivedModel
from llmd.registry.store import Store
from tests.daemon.cli.conftest import Llmd
from tests.serving.gguf_model import write_gguf_model
from tests.serving.model import write_model
from tests.serving.pulled import install_pulled
from tests.serving.running import RunningDaemon, directories_below, running_daemon

KINDS = (
    "stored",
    "org/pulled",
    "guide",
    "copied",
    "derived",
    "of-guide",
    "of-path",
    "twice",
    "DIRECTORY",
    "FILE",
)
DERIVED = ("derived", "of-guide", "of-path", "twice")
ALIASES = {"alias": "stored", "alias-of-derived": "derived", "many-*": "derived"}


def write_models(models: Path, outside: Path) -> Store:
    """Write a model of each kind."""
    store = Store(models, {"guide": guide_directory()})
    write_model(models / "stored")
    directory = write_model(outside / "directory")
    write_gguf_model(outside / "file.gguf")
    install_pulled(models, "org/pulled", directory)
    store.copy("org/pulled", "copied")
    bases = {"derived": "stored", "of-guide": "guide", "of-path": str(directory)}
    for name, base in bases.items():
        parameters = {"top_k": 5, "stop": ["q", "r"]}
        record = DerivedModel(base, 0.0, system="Be brief.", parameters=parameters)
        store.derived.save(name, record)
    store.copy("derived", "twice")
    return store


@pytest.fixture(autouse=True)
def shared_probes(llmd: Llmd, probes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices are probed once for all tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(probes))


@pytest.fixture
def store(llmd: Llmd, tmp_path: Path) -> Store:
    return write_models(tmp_path / "data" / "llmd" / "models", tmp_path)


def typed(kind: str, folder: Path) -> str:
    """What a user types for a model of this kind."""
    return {"DIRECTORY": str(folder / "directory"), "FILE": str(folder / "file.gguf")}.get(kind, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_commands_without_a_daemon(llmd: Llmd, store: Store, tmp_path: Path, kind: str) -> None:
    model = typed(kind, tmp_path)
    shown = llmd("show", model)
    assert shown.code == 0, shown.err
    assert ("derived from" in shown.out) == (kind in DERIVED)
    assert llmd("show", model, "--template").code == llmd("show", model, "--tokens").code == 0
    assert llmd("cp", model, "second").code == 0
    assert llmd("show", "second").code == 0
    converted = llmd("convert", model, str(tmp_path / "out"))
    assert converted.code == 0, converted.err
    assert ("with a prompt and settings of its own" in converted.out) == (kind in DERIVED)
    names = named_models([model], store)
    assert read_aliases([f"a={model}"] if "/" not in model else ["a"], tuple(names), store) == {
        "a": next(iter(names))
    }
    check_serves([model], load_settings(directories=None))
    assert llmd("rm", "second").code == 0
    assert llmd("show", model).code == 0


@pytest.mark.parametrize("kind", DERIVED)
def test_a_derived_model_is_shown_and_removed_alone(llmd: Llmd, store: Store, kind: str) -> None:
    lines = [line.split(maxsplit=1) for line in llmd("show", kind).out.splitlines()]
    assert ["parameter", "top_k 5"] in lines
    assert ["parameter", "stop q"] in lines
    assert "system prompt  Be brief." in llmd("show", kind).out
    document = json.loads(llmd("show", kind, "--json").out)
    assert document["derived"]["system"] == "Be brief."
    assert document["model"]["base"] == document["derived"]["base"]
    assert llmd("rm", kind).code == 0
    assert llmd("show", kind).code == 3
    assert llmd("show", document["derived"]["base"]).code == 0


def test_names_of_derived_models_are_taken(llmd: Llmd, store: Store) -> None:
    taken = llmd("cp", "stored", "derived")
    assert (taken.code, "there is already a model derived" in taken.err) == (9, True)
    pulled = llmd("pull", "derived", "--hub", "http://127.0.0.1:9")
    assert (pulled.code, "derived is a model that was derived from stored" in pulled.err) == (9, True)


def test_a_derived_model_without_its_base_is_explained(llmd: Llmd, store: Store) -> None:
    store.derived.save("orphan", DerivedModel(base="gone", created=0.0))
    for command in (["show", "orphan"], ["convert", "orphan", "x.gguf"], ["cp", "orphan", "y"]):
        done = llmd(*command)
        assert done.code == 3
        assert "orphan is derived from gone, which is not on this machine" in done.err
    assert llmd("rm", "orphan").code == 0


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    root = tmp_path_factory.mktemp("daemon")
    directories = directories_below(root)
    write_models(directories.models, root)
    with running_daemon(directories, models=("derived",), aliases=ALIASES) as running:
        yield running


def test_a_daemon_says_that_it_serves_a_derived_model(daemon: RunningDaemon) -> None:
    names = ("derived", "alias-of-derived", "stored", "alias")
    assert daemon.serving.models == names


@pytest.mark.parametrize("kind", [*(kind for kind in KINDS if "guide" not in kind), *ALIASES, "many-names"])
def test_commands_that_ask_the_daemon(
    llmd: Llmd, daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("LLMD_HOST", f"unix:{daemon.socket}")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    if kind == "many-*":
        kind = "many-others"
    model = typed(kind, daemon.directories.data.parent)
    done = llmd("run", model, "Hello", "-n", "2", "--json")
    assert done.code == 0, done.err
    for command in (["load", model], ["stop", model]):
        done = llmd(*command)
        assert done.code == 0, done.err
