from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from llmd.api.errors import ConflictError, DiskSpaceError, HubError, LlmdError, NotFoundError, RequestError
from llmd.registry.names import HubName
from llmd.registry.pull import PullStep
from llmd.server.errors import UnavailableError
from llmd.server.models.pulls import Pulls, pull_command
from tests.corrupt import small_model
from tests.serving.hub import Hub, Repository

NAME = HubName("org/name")
LIMIT_S = 20


@pytest.fixture
def pulls(hub: Hub, tmp_path: Path) -> Pulls:
    directory = small_model.write_small_model(tmp_path / "original")
    hub.repositories["org/name"] = Repository.of(directory)
    return Pulls(pull_command(tmp_path / "models", hub.url, ["guide"]))


async def until_fetching(steps: AsyncIterator[PullStep]) -> PullStep:
    async for step in steps:
        if step.total:
            return step
    raise AssertionError("nothing was fetched")


async def test_a_pull_ends_with_the_name_of_the_model(pulls: Pulls, tmp_path: Path) -> None:
    async with pulls.subscribe(NAME) as steps:
        told = [step async for step in steps]
    assert (told[0].status, told[-1].status, told[-1].model) == ("pulling manifest", "success", "org/name")
    assert (tmp_path / "models" / "org" / "name" / "config.json").exists()
    assert pulls.running == {}


async def test_all_who_want_a_model_share_one_download(pulls: Pulls, hub: Hub) -> None:
    hub.hold.clear()

    async def subscribe() -> list[PullStep]:
        async with pulls.subscribe(NAME) as steps:
            return [step async for step in steps]

    async with pulls.subscribe(NAME) as steps:
        await until_fetching(steps)
        assert list(pulls.running) == [NAME]
        subscribers = [asyncio.Task(subscribe(), name=f"subscriber {number}") for number in range(3)]
        await asyncio.sleep(0)
        hub.hold.set()
        told = [step async for step in steps]
    for subscriber in subscribers:
        assert (await subscriber)[-1] == told[-1]
    assert hub.asked.count("/api/models/org/name") == 1


async def test_one_who_leaves_stops_nothing_for_the_others(pulls: Pulls, hub: Hub) -> None:
    hub.hold.clear()
    async with pulls.subscribe(NAME) as steps:
        async with pulls.subscribe(NAME) as others:
            await until_fetching(others)
        hub.hold.set()
        assert [step async for step in steps][-1].status == "success"


async def test_the_last_who_leaves_ends_it_and_the_next_goes_on(
    pulls: Pulls, hub: Hub, tmp_path: Path
) -> None:
    hub.hold.clear()
    async with asyncio.timeout(LIMIT_S), pulls.subscribe(NAME) as steps:
        await until_fetching(steps)
    assert pulls.running == {}
    hub.hold.set()
    async with pulls.subscribe(NAME) as steps:
        assert [step async for step in steps][-1].status == "success"
    assert (tmp_path / "models" / "org" / "name").is_dir()


async def test_closing_ends_every_pull_with_the_reason(pulls: Pulls, hub: Hub) -> None:
    hub.hold.clear()
    async with pulls.subscribe(NAME) as steps:
        await until_fetching(steps)
        await pulls.close(UnavailableError("ending", code="c"))
        with pytest.raises(UnavailableError, match="ending"):
            _ = [step async for step in steps]


async def failed(pulls: Pulls, name: HubName) -> LlmdError:
    async with pulls.subscribe(name) as steps:
        with pytest.raises(LlmdError) as caught:
            _ = [step async for step in steps]
    return caught.value


async def test_errors_come_back_as_they_were(pulls: Pulls, hub: Hub, tmp_path: Path) -> None:
    absent = await failed(pulls, HubName("org/absent"))
    assert type(absent) is NotFoundError
    assert "HF_TOKEN" in absent.hint
    (tmp_path / "models" / "org" / "name").mkdir(parents=True)
    assert type(await failed(pulls, NAME)) is ConflictError
    hub.repositories["gated"] = Repository({}, token="t")
    assert (await failed(pulls, HubName("gated"))).exit_code == 4
    assert type(await failed(pulls, HubName("../x"))) is RequestError


async def test_a_completed_count_never_goes_down(pulls: Pulls, hub: Hub) -> None:
    hub.damaged["model.safetensors"] = 1
    async with pulls.subscribe(NAME) as steps:
        counts = [step.completed async for step in steps if step.file == "model.safetensors" and step.total]
    assert counts == sorted(counts)
    assert hub.sent["model.safetensors"] > counts[-1]


async def test_a_process_that_dies_fails_its_pull(tmp_path: Path) -> None:
    pulls = Pulls(("sh", "-c", "kill -9 $$", "--"))
    error = await failed(pulls, NAME)
    assert "ended with -9" in error.message


async def test_what_cannot_be_started_fails_its_pull(tmp_path: Path) -> None:
    error = await failed(Pulls((str(tmp_path / "absent"),)), NAME)
    assert "the pull of org/name failed" in error.message


async def test_a_refusal_of_the_system_is_told(hub: Hub, tmp_path: Path, pulls: Pulls) -> None:
    (tmp_path / "models").write_text("a file where the folder should be")
    error = await failed(pulls, NAME)
    assert not isinstance(error, HubError | DiskSpaceError)
    assert str(tmp_path / "models") in error.message
