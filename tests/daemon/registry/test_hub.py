from __future__ import annotations

import subprocess
import sys

import pytest

from llmd.api.errors import HubError, NotFoundError
from llmd.registry.hub import Hub
from llmd.registry.hub_errors import HubLostError
from llmd.registry.names import HubName
from tests.serving import hub as hubs
from tests.serving.hub import COMMIT, Repository

NAME = HubName("org/name")
LARGE = bytes(range(256)) * 8


@pytest.fixture(autouse=True)
def repository(hub: hubs.Hub) -> Repository:
    hub.repositories["org/name"] = Repository({"config.json": b"{}", "model.safetensors": LARGE})
    return hub.repositories["org/name"]


def read(hub: hubs.Hub, path: str, offset: int = 0, name: HubName = NAME) -> tuple[int, bytes]:
    with Hub(hub.url).open(name, COMMIT, path, offset) as content:
        return content.offset, b"".join(content.chunks)


def test_lists_files_with_sizes_and_hashes(hub: hubs.Hub) -> None:
    listing = Hub(hub.url).list(NAME)
    assert listing.commit == COMMIT
    small, large = listing.files
    assert (small.path, small.size_bytes, small.sha256) == ("config.json", 2, "")
    assert small.key == f"git-{small.git_sha1}"
    assert small.digest == f"sha1:{small.git_sha1}"
    assert (large.size_bytes, large.key, large.digest) == (len(LARGE), large.sha256, f"sha256:{large.sha256}")


def test_a_revision_is_a_branch_a_tag_or_a_commit(hub: hubs.Hub, repository: Repository) -> None:
    repository.add("refs/pr/1", "2" * 40, {"config.json": b"[]"})
    for revision in ("refs/pr/1", "2" * 40):
        assert Hub(hub.url).list(HubName("org/name", revision)).commit == "2" * 40
    with pytest.raises(NotFoundError, match="org/name has no revision v9"):
        Hub(hub.url).list(HubName("org/name", "v9"))


def test_reads_small_files_and_follows_redirects_of_large_ones(hub: hubs.Hub) -> None:
    assert read(hub, "config.json") == (0, b"{}")
    assert read(hub, "model.safetensors") == (0, LARGE)


def test_begins_where_it_is_asked_to_and_says_when_it_could_not(hub: hubs.Hub) -> None:
    assert read(hub, "model.safetensors", 2000) == (2000, LARGE[2000:])
    hub.ignores_ranges = True
    assert read(hub, "model.safetensors", 2000) == (0, LARGE)
    hub.ignores_ranges = False
    assert read(hub, "model.safetensors", len(LARGE) + 1) == (0, b"")


def test_what_does_not_exist_is_not_found(hub: hubs.Hub) -> None:
    with pytest.raises(NotFoundError, match="has no model org/other, or it is private") as caught:
        Hub(hub.url).list(HubName("org/other"))
    assert "HF_TOKEN" in caught.value.hint
    with pytest.raises(NotFoundError):
        read(hub, "absent.json")


def test_a_gated_model_says_where_its_terms_are(
    hub: hubs.Hub, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.token = "right"
    for given in (None, "wrong"):
        if given:
            monkeypatch.setenv("HF_TOKEN", given)
        with pytest.raises(HubError, match="org/name is gated") as caught:
            Hub(hub.url).list(NAME)
        assert f"{hub.url}/org/name" in caught.value.hint
        assert caught.value.exit_code == 4
    monkeypatch.setenv("HF_TOKEN", "right")
    assert read(hub, "config.json") == (0, b"{}")


def test_a_token_is_for_the_hub_alone(
    hub: hubs.Hub, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "right")
    repository.token = "right"
    hub.redirect_to = (
        f"{hub.url.replace('127.0.0.1', 'localhost')}/cdn/org/name/at/{COMMIT}/model.safetensors"
    )
    assert read(hub, "model.safetensors") == (0, LARGE)
    assert hub.tokens == [None]


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_hub_that_is_down_may_be_asked_again(hub: hubs.Hub, status: int) -> None:
    hub.failing = [status]
    with pytest.raises(HubLostError, match=f"answers {status} for org/name"):
        Hub(hub.url).list(NAME)


def test_a_connection_that_breaks_is_told_apart(hub: hubs.Hub) -> None:
    hub.cut_after["model.safetensors"] = [100]
    with pytest.raises(HubLostError, match=r"the connection to http.* failed"):
        read(hub, "model.safetensors")
    with pytest.raises(HubLostError, match="failed"):
        Hub("http://127.0.0.1:1").list(NAME)


@pytest.mark.parametrize(
    "described",
    [
        {"siblings": [{"rfilename": "../x", "size": 1, "blobId": "a" * 40}]},
        {"siblings": [{"rfilename": "x", "blobId": "a" * 40}]},
        {"siblings": [{"rfilename": "x", "size": 1}]},
        {"siblings": [{"rfilename": "x", "size": 1, "blobId": "../../" + "a" * 34}]},
        {"siblings": [{"rfilename": "x", "size": 1, "lfs": {"size": 1, "sha256": "../x", "pointerSize": 1}}]},
        {"siblings": "nonsense"},
        [],
        b"<html>a page of something else</html>",
    ],
)
def test_descriptions_that_cannot_be_trusted_are_refused(hub: hubs.Hub, described: object) -> None:
    hub.described = described
    with pytest.raises(HubError, match="sent an invalid description of org/name"):
        Hub(hub.url).list(NAME)


def test_says_no_more_about_this_machine_than_it_must(hub: hubs.Hub) -> None:
    Hub(hub.url).list(NAME)
    read(hub, "model.safetensors")
    assert hub.agents == {"llmd"}
    assert hub.asked == ["/api/models/org/name", f"/org/name/resolve/{COMMIT}/model.safetensors"]


def test_environment_names_the_hub_and_may_forbid_it(hub: hubs.Hub) -> None:
    code = f"""
import os, sys
from llmd.registry.hub import Hub
assert "huggingface_hub" not in sys.modules
assert Hub().endpoint == {hub.url!r}
assert Hub().list(__import__("llmd.registry.names", fromlist=["HubName"]).HubName("org/name")).commit
"""
    environment = {"HF_ENDPOINT": hub.url, "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    offline = "from llmd.registry.hub import Hub; Hub()"
    done = subprocess.run(
        [sys.executable, "-c", offline],
        env={**environment, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "HF_HUB_OFFLINE is set, so nothing can be pulled" in done.stderr
