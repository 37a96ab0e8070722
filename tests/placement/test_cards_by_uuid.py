"""A card that is chosen by its UUID gets the model, in whatever order the driver lists the cards."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llmd.api.errors import LlmdError
from llmd.engine.composition import make_host
from tests.plugin_sites import Site, site
from tests.serving.http import chat, send
from tests.serving.model import write_model
from tests.serving.running import MODEL, directories_below, running_daemon

__all__ = ["site"]

CARDS = """
import os
import msgspec
from llmd.api import Backend, hookimpl
from llmd.builtin.reference.device import ReferenceDevice, describe

LLMD_API = 2


def cards():
    found = {}
    for index, uuid in enumerate(os.environ["CUDA_VISIBLE_DEVICES"].split(",")):
        found[f"card:{index}"] = msgspec.structs.replace(
            describe(), name=f"card:{index}", kind="card", score=90, memory_bytes=1 << 30, memory_id=uuid,
            features=(), aliases=(uuid,),
        )
    return found


class Card(ReferenceDevice):
    def __init__(self, name):
        self.info = cards()[name]


@hookimpl
def llmd_backends():
    return [Backend("card", probe=lambda: list(cards().values()), open=lambda name, options: Card(name))]
"""
"""Cards that compute like the reference device. Like CUDA, they have the order of a variable."""


@pytest.fixture
def cards(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.write("card", CARDS)
    path = os.pathsep.join([str(site.folder), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)


@pytest.mark.usefixtures("cards")
def test_the_same_card_is_used_after_the_order_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = directories_below(tmp_path)
    write_model(directories.models / MODEL)
    for order, name in (("GPU-a,GPU-b", "card:1"), ("GPU-b,GPU-a", "card:0")):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", order)
        with running_daemon(directories, device="GPU-b") as daemon:
            chat(daemon)
            (model,) = send(daemon, "GET", "/llmd/plan").json["models"]
        assert [(stage["device"], stage["memory_id"]) for stage in model["stages"]] == [(name, "GPU-b")]


@pytest.mark.usefixtures("cards")
def test_a_card_that_is_hidden_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
    assert make_host(tmp_path).find_device("GPU-b").info.name == "card:1"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a")
    host = make_host(tmp_path)
    assert host.find_device("GPU-a").info.name == "card:0"
    with pytest.raises(LlmdError, match="GPU-b"):
        host.find_device("GPU-b")
