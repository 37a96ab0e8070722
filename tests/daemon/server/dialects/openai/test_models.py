from __future__ import annotations

from pathlib import Path

import pytest

from tests.serving.http import chat, send
from tests.serving.model import CONTEXT_LEN, write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon


def test_loaded_models_come_first_with_their_aliases(daemon: RunningDaemon) -> None:
    body = send(daemon, "GET", "/v1/models").json
    assert body["object"] == "list"
    ids = [entry["id"] for entry in body["data"]]
    assert ids[:2] == [MODEL, "gpt-4o"]
    assert "other" in ids
    assert (body["first_id"], body["last_id"], body["has_more"]) == (ids[0], ids[-1], False)


def test_an_alias_of_a_model_that_is_not_loaded_is_listed(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    with running_daemon(directories, models=(), aliases={"gpt-4o": MODEL, "gpt-*": MODEL}) as daemon:
        listed = send(daemon, "GET", "/v1/models").json["data"]
        assert [(entry["id"], entry["status"]) for entry in listed] == [
            (MODEL, "unloaded"),
            ("gpt-4o", "unloaded"),
        ]
        assert send(daemon, "GET", "/v1/models/gpt-4o").json["root"].endswith(f"/models/{MODEL}")


def test_a_model_given_by_path_is_listed_and_loaded_again_after_it_was_unloaded(
    tmp_path: Path, probes: Path
) -> None:
    path = write_model(tmp_path / "elsewhere" / "mine")
    directories = directories_below(tmp_path, cache=probes)
    with running_daemon(directories, models=(str(path),), aliases={"gpt-4o": "mine"}) as daemon:
        assert send(daemon, "POST", "/api/copy", {"source": "mine", "destination": "copy"}).status == 200

        def listed() -> list[tuple[str, str, str | None]]:
            entries = send(daemon, "GET", "/v1/models").json["data"]
            return [(entry["id"], entry["status"], entry["parent"]) for entry in entries]

        names = (("mine", None), ("gpt-4o", None), ("copy", "mine"))
        loaded = listed()
        assert loaded == [(name, "loaded", parent) for name, parent in names]
        send(daemon, "POST", "/llmd/stop", {"model": "mine"})
        assert listed() == [(name, "unloaded", parent) for name, parent in names]
        assert send(daemon, "GET", "/v1/models/mine").json["root"] == str(path)
        assert send(daemon, "GET", f"/v1/models/{path}").json["id"] == "mine"
        assert chat(daemon, model=str(path)).headers["x-llmd-model"] == "mine"
        assert listed() == loaded


def test_one_entry_serves_every_kind_of_client(daemon: RunningDaemon) -> None:
    entry = send(daemon, "GET", f"/v1/models/{MODEL}").json
    assert entry["root"].endswith(f"/models/{MODEL}")
    assert (entry["object"], entry["owned_by"], entry["type"]) == ("model", "llmd", "model")
    assert entry["max_model_len"] == entry["max_input_tokens"] == CONTEXT_LEN
    assert entry["status"] == "loaded"
    assert entry["meta"]["n_ctx_train"] == CONTEXT_LEN
    assert entry["meta"]["n_params"] > 0
    assert entry["created_at"].endswith("Z")


@pytest.mark.parametrize(
    ("name", "found"), [("gpt-4o", "gpt-4o"), ("other:latest", "other"), ("oth", "other")]
)
def test_model_is_found_by_every_name_that_a_request_may_call_it(
    daemon: RunningDaemon, name: str, found: str
) -> None:
    assert send(daemon, "GET", f"/v1/models/{name}").json["id"] == found


@pytest.mark.parametrize("path", ["/v1/models/nobody", "/v1/models/org%2Fnobody", "/models/org/nobody"])
def test_unknown_models_are_not_found(daemon: RunningDaemon, path: str) -> None:
    reply = send(daemon, "GET", path)
    assert (reply.status, reply.error["code"]) == (404, "model_not_found")
    assert MODEL in reply.error["message"]
