from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llmd.api.errors import RequestError
from llmd.registry.names import check_model_name
from tests.serving.http import send
from tests.serving.model import write_model
from tests.serving.ndjson import generate
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

BAD_NAMES = ("../../x", "-rf", "a\nb", "x" * 300, "a/b/c")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, probes: Path) -> Iterator[RunningDaemon]:
    """A daemon whose models a test may change."""
    directories = directories_below(tmp_path_factory.mktemp("manage"), cache=probes)
    write_model(directories.models / MODEL)
    with running_daemon(directories) as running:
        yield running


def names(daemon: RunningDaemon) -> set[str]:
    return {entry["name"] for entry in send(daemon, "GET", "/api/tags").json["models"]}


def test_copy_answers_as_its_source_and_can_be_deleted(own: RunningDaemon) -> None:
    body = {"source": MODEL, "destination": "copy"}
    reply = send(own, "POST", "/api/copy", body)
    assert (reply.status, reply.content) == (200, b"")
    assert "copy" in names(own)
    assert generate(own, model="copy").json["response"] == generate(own).json["response"]
    assert send(own, "DELETE", "/api/delete", {"model": "copy"}).status == 200
    assert "copy" not in names(own)
    assert send(own, "DELETE", "/api/delete", {"model": "copy"}).status == 404


def test_copy_of_a_derived_model_lives_on_without_it(own: RunningDaemon) -> None:
    send(own, "POST", "/api/create", {"model": "mario", "from": MODEL, "system": "Be Mario."})
    send(own, "POST", "/api/copy", {"source": "mario", "destination": "luigi:latest"})
    send(own, "DELETE", "/api/delete", {"name": "mario"})
    shown = send(own, "POST", "/api/show", {"model": "luigi"}).json
    assert (shown["system"], shown["details"]["parent_model"]) == ("Be Mario.", MODEL)
    send(own, "DELETE", "/api/delete", {"model": "luigi"})


@pytest.mark.parametrize("source", [MODEL, "mario"])
def test_a_copy_is_listed_as_its_source_under_another_name(own: RunningDaemon, source: str) -> None:
    send(own, "POST", "/api/create", {"model": "mario", "from": MODEL, "system": "Be Mario."})
    send(own, "POST", "/api/copy", {"source": source, "destination": "copy"})
    listed = {entry["name"]: entry for entry in send(own, "GET", "/api/tags").json["models"]}
    for name in ("mario", "copy"):
        send(own, "DELETE", "/api/delete", {"model": name})
    other = {"name": "copy", "model": "copy", "modified_at": listed["copy"]["modified_at"]}
    assert listed["copy"] == listed[source] | other
    assert listed["mario"]["digest"] != listed[MODEL]["digest"]


def test_what_cannot_be_copied_or_deleted_is_refused(own: RunningDaemon) -> None:
    body = {"source": "nobody", "destination": "copy"}
    assert send(own, "POST", "/api/copy", body).status == 404
    assert send(own, "POST", "/api/copy", {"source": MODEL, "destination": MODEL}).status == 400
    assert send(own, "POST", "/api/copy", {"source": MODEL}).status == 400
    assert send(own, "DELETE", "/api/delete", {"model": MODEL}).status == 400
    assert send(own, "DELETE", "/api/delete", {"model": "nobody"}).status == 404
    assert names(own) == {MODEL}


def test_names_that_the_command_line_refuses_are_refused(own: RunningDaemon) -> None:
    for name in BAD_NAMES:
        with pytest.raises(RequestError) as refused:
            check_model_name(name, param="destination")
        copy = send(own, "POST", "/api/copy", {"source": MODEL, "destination": name})
        assert (copy.status, copy.json["error"]) == (400, str(refused.value))
        assert send(own, "DELETE", "/api/delete", {"model": name}).status == 400
    assert names(own) == {MODEL}
