from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import ConfigError
from llmd.api.plugins import Right
from llmd.config.keys import KeyFile
from llmd.server.errors import ForbiddenError, UnauthorizedError
from llmd.server.http.access import Access
from llmd.server.http.guards import Peer
from tests.serving.http import chat, send
from tests.serving.running import MODEL, RunningDaemon

UNIX, LOOPBACK, REMOTE = Peer(None, None), Peer("127.0.0.1", "127.0.0.1"), Peer("192.0.2.1", "192.0.2.9")
OPERATOR, USER = "operator", "user"


@pytest.fixture
def file(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "keys.json")


@pytest.fixture
def keys(file: KeyFile) -> dict[str, str]:
    return {USER: file.add(USER), OPERATOR: file.add(OPERATOR, manages=True)}


def outcome(access: Access, peer: Peer, secret: str, right: Right) -> str:
    """Return the name of the admitted key, or the code of the refusal."""
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    try:
        return access.admit(peer, headers, right)
    except (UnauthorizedError, ForbiddenError) as error:
        return error.code


@pytest.mark.parametrize(
    ("options", "peer", "name", "use", "manage"),
    [
        ({}, UNIX, None, "", ""),
        ({}, UNIX, "stranger", "", ""),
        ({}, UNIX, USER, USER, USER),
        ({}, LOOPBACK, None, "", ""),
        ({}, LOOPBACK, "stranger", "invalid_api_key", "invalid_api_key"),
        ({}, LOOPBACK, USER, USER, USER),
        ({}, REMOTE, None, "missing_api_key", "missing_api_key"),
        ({}, REMOTE, "stranger", "invalid_api_key", "invalid_api_key"),
        ({}, REMOTE, USER, USER, "key_lacks_right"),
        ({}, REMOTE, OPERATOR, OPERATOR, OPERATOR),
        ({"require_key": True}, UNIX, None, "", ""),
        ({"require_key": True}, LOOPBACK, None, "missing_api_key", "missing_api_key"),
        ({"require_key": True}, LOOPBACK, USER, USER, "key_lacks_right"),
        ({"no_auth": True}, REMOTE, None, "", "local_only"),
        ({"no_auth": True}, REMOTE, "stranger", "invalid_api_key", "invalid_api_key"),
        ({"no_auth": True}, REMOTE, OPERATOR, OPERATOR, OPERATOR),
    ],
)
def test_each_sender_may_do_what_its_place_and_key_allow(
    file: KeyFile,
    keys: dict[str, str],
    options: dict[str, bool],
    peer: Peer,
    name: str | None,
    use: str,
    manage: str,
) -> None:
    access = Access(file, **{"no_auth": False, "require_key": False, **options})
    secret = keys.get(name, name) if name else ""
    assert outcome(access, peer, secret, "use") == use
    assert outcome(access, peer, secret, "manage") == manage
    assert outcome(access, peer, secret, "none") == ""


@pytest.mark.parametrize("peer", [UNIX, LOOPBACK])
def test_without_keys_any_dummy_will_do(file: KeyFile, peer: Peer) -> None:
    access = Access(file, no_auth=False, require_key=False)
    assert not access.has_keys
    assert outcome(access, peer, "ollama", "use") == ""
    assert outcome(Access(file, no_auth=True, require_key=False), REMOTE, "ollama", "use") == ""
    assert outcome(access, REMOTE, "ollama", "use") == "missing_api_key"


@pytest.mark.parametrize(
    "write",
    [
        lambda key: {"Authorization": f"Bearer {key}"},
        lambda key: {"Authorization": f"bearer  {key}"},
        lambda key: {"x-api-key": key},
        lambda key: {"Authorization": "Basic abc", "x-api-key": key},
    ],
)
def test_keys_come_as_each_client_sends_them(file: KeyFile, keys: dict[str, str], write: Any) -> None:
    access = Access(file, no_auth=False, require_key=False)
    assert access.admit(REMOTE, write(keys[USER]), "use") == USER


def test_a_changed_file_is_followed_and_keys_stay_if_it_is_damaged(
    file: KeyFile, keys: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    access = Access(file, no_auth=False, require_key=False)
    assert outcome(access, REMOTE, keys[USER], "use") == USER
    file.remove(USER)
    assert outcome(access, REMOTE, keys[USER], "use") == "invalid_api_key"
    file.path.write_text("{")
    for _ in range(2):
        assert outcome(access, REMOTE, keys[OPERATOR], "use") == OPERATOR
    assert [one for one in caplog.messages if one != "keys_changed"] == ["keys_not_reloaded"]
    with pytest.raises(ConfigError):
        access.reload()
    added = file.path.with_name("added.json")
    new = KeyFile(added).add("new")
    added.replace(file.path)
    assert outcome(access, REMOTE, new, "use") == "new"
    file.path.unlink()
    assert outcome(access, REMOTE, new, "use") == "missing_api_key"


def test_changes_of_keys_are_logged_with_their_names(
    file: KeyFile, keys: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    access = Access(file, no_auth=False, require_key=False)
    assert caplog.records == []
    file.add("new")
    file.remove(USER)
    assert outcome(access, REMOTE, keys[OPERATOR], "use") == OPERATOR
    (record,) = caplog.records
    assert (record.message, vars(record)["added"], vars(record)["removed"]) == (
        "keys_changed",
        ["new"],
        [USER],
    )


def test_a_key_without_the_right_is_named(file: KeyFile, keys: dict[str, str]) -> None:
    access = Access(file, no_auth=False, require_key=False)
    with pytest.raises(ForbiddenError) as caught:
        access.admit(REMOTE, {"x-api-key": keys[USER]}, "manage")
    assert caught.value.key == USER


@pytest.fixture
def guarded(daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch, file: KeyFile) -> RunningDaemon:
    """The daemon as seen from another machine."""
    monkeypatch.setattr("llmd.server.app.peer_of", lambda _request: REMOTE)
    monkeypatch.setattr(daemon.daemon._access, "_file", file)
    return daemon


def test_other_machines_need_a_key_for_all_but_health(guarded: RunningDaemon, file: KeyFile) -> None:
    for path in ("/v1/models", "/llmd/ps", "/nothing", "/version"):
        refused = send(guarded, "GET", path)
        assert (refused.status, refused.error["code"]) == (401, "missing_api_key"), path
        assert refused.error["type"] == "authentication_error"
        assert refused.headers["WWW-Authenticate"] == "Bearer"
    for path in ("/health", "/healthz", "/v1/health", "/ready", "/readyz", "/"):
        assert send(guarded, "GET", path).status == 200, path
    assert send(guarded, "HEAD", "/").status == 200
    key = {"Authorization": f"Bearer {file.add(USER)}"}
    assert send(guarded, "GET", "/v1/models", headers=key).status == 200
    assert send(guarded, "GET", "/nothing", headers=key).status == 404
    refused = send(guarded, "GET", "/llmd/ps", headers=key)
    assert (refused.status, refused.error["code"]) == (403, "key_lacks_right")
    file.add(OPERATOR, manages=True)


def test_key_that_manages_reaches_administration_from_elsewhere(
    guarded: RunningDaemon, file: KeyFile
) -> None:
    key = {"x-api-key": file.add(OPERATOR, manages=True)}
    assert send(guarded, "GET", "/llmd/ps", headers=key).json["models"]
    assert send(guarded, "POST", "/llmd/reload", {}, key).json["reloaded"] is True
    file.remove(OPERATOR)
    assert send(guarded, "GET", "/llmd/ps", headers=key).status == 401


def test_refusal_has_the_form_of_the_dialect(guarded: RunningDaemon) -> None:
    refused = send(guarded, "POST", "/v1/messages", {}, {"anthropic-version": "2023-06-01"})
    assert refused.status == 401
    assert json.loads(refused.content)["error"]["type"] == "authentication_error"


def test_browsers_may_ask_first_without_a_key(guarded: RunningDaemon) -> None:
    assert send(guarded, "OPTIONS", "/v1/models", headers={"Origin": "http://localhost"}).status == 204


def test_dummy_keys_of_clients_are_taken_where_there_are_none(daemon: RunningDaemon) -> None:
    assert chat(daemon).status == 200
    assert send(daemon, "GET", "/v1/models", headers={"x-api-key": "ollama"}).status == 200


def test_metrics_need_any_key(guarded: RunningDaemon, file: KeyFile) -> None:
    assert send(guarded, "GET", "/metrics").status == 401
    key = {"Authorization": f"Bearer {file.add('prometheus')}"}
    assert send(guarded, "GET", "/metrics", headers=key).status == 200


def test_only_those_who_may_manage_see_where_models_are(guarded: RunningDaemon, file: KeyFile) -> None:
    for manages in (False, True):
        key = {"Authorization": f"Bearer {file.add(f'key-{manages}', manages=manages)}"}
        (entry,) = [
            one for one in send(guarded, "GET", "/v1/models", headers=key).json["data"] if one["id"] == MODEL
        ]
        shown = send(guarded, "GET", f"/v1/models/{MODEL}", headers=key).json
        assert ("/" in entry["root"], shown["root"]) == (manages, entry["root"])
