from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import NotFoundError, RequestError
from llmd.registry.derived import DerivedModel
from llmd.registry.store import Store
from llmd.server.models.model_table import ModelTable
from tests.serving.model_managers import bare, residents_of


@pytest.fixture
def table(tmp_path: Path) -> ModelTable:
    for name in ("alpha", "alphabet", "org/beta"):
        directory = tmp_path / "models" / name
        directory.mkdir(parents=True)
        (directory / "config.json").write_text("{}")
    store = Store(tmp_path / "models", {})
    return ModelTable(store, {"gpt-4o": "alpha"}, residents_of())


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("alpha", "alpha"),
        ("alpha:latest", "alpha"),
        ("gpt-4o", "alpha"),
        ("alphab", "alphabet"),
        ("org/b", "org/beta"),
        ("gpt", "alpha"),
    ],
)
async def test_names_are_found_exactly_by_alias_and_by_unique_prefix(
    table: ModelTable, asked: str, name: str
) -> None:
    served = await table.resolve(asked)
    assert served.name == name
    assert await table.resolve(name) is served


@pytest.mark.parametrize("asked", ["alp", "gamma", "ALPHA"])
async def test_names_that_mean_no_single_model_are_refused(table: ModelTable, asked: str) -> None:
    with pytest.raises(NotFoundError, match="alpha"):
        await table.resolve(asked)


def test_models_are_located_without_being_loaded(table: ModelTable, tmp_path: Path) -> None:
    assert table.locate("gpt-4o") == ("alpha", tmp_path / "models" / "alpha")
    assert sorted(table.directories()) == ["alpha", "alphabet", "org/beta"]
    assert table.served == ()
    with pytest.raises(NotFoundError):
        table.locate("gamma")


async def test_no_name_is_the_only_loaded_model(table: ModelTable) -> None:
    with pytest.raises(RequestError, match="0 are loaded"):
        await table.resolve("")
    served = await table.resolve("alpha")
    assert await table.resolve(None) is served
    await table.resolve("alphabet")
    with pytest.raises(RequestError, match="alpha, alphabet"):
        await table.resolve("")


async def test_directories_are_served_only_to_those_who_may_name_them(
    table: ModelTable, tmp_path: Path
) -> None:
    directory = tmp_path / "elsewhere"
    directory.mkdir()
    with pytest.raises(NotFoundError):
        await table.resolve(str(directory))
    served = await table.resolve(str(directory), allow_path=True)
    assert (served.name, served.directory) == ("elsewhere", directory)
    assert await table.resolve("elsewhere") is served
    await table.unload("elsewhere")
    assert (await table.resolve("elsewhere")).directory == directory


async def test_the_path_of_a_model_that_is_known_is_a_name_for_everybody(
    table: ModelTable, tmp_path: Path
) -> None:
    directory = tmp_path / "elsewhere"
    directory.mkdir()
    served = await table.resolve(str(directory), allow_path=True)
    assert await table.resolve(str(directory)) is served
    await table.unload("elsewhere")
    assert (await table.resolve(str(directory))).name == "elsewhere"
    assert (await table.resolve(str(tmp_path / "models" / "alpha"))).name == "alpha"


async def test_a_gguf_file_is_served_by_its_name(table: ModelTable, tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    path.touch()
    served = await table.resolve(str(path), allow_path=True)
    assert (served.name, served.directory) == ("mine", path)


async def test_directory_with_a_name_that_is_taken_is_served_under_its_path(
    table: ModelTable, tmp_path: Path
) -> None:
    stored = await table.resolve("alpha")
    directory = tmp_path / "alpha"
    directory.mkdir()
    other = await table.resolve(str(directory), allow_path=True)
    assert other is not stored
    assert (other.name, other.directory) == (str(directory), directory)
    assert await table.resolve(str(directory), allow_path=True) is other


async def test_alias_of_nothing_is_not_found(tmp_path: Path) -> None:
    table = ModelTable(Store(tmp_path, {}), {"mine": "gone"}, residents_of())
    with pytest.raises(NotFoundError, match="no model mine"):
        await table.resolve("mine")


async def test_model_that_could_not_be_loaded_is_tried_anew(table: ModelTable) -> None:
    failed = await table.resolve("alpha")
    bare(failed).never_loaded = True
    again = await table.resolve("alpha")
    assert again is not failed
    assert bare(failed).closed == [None]


async def test_unloaded_model_is_closed_and_forgotten(table: ModelTable) -> None:
    served = await table.resolve("alpha")
    await table.unload("gpt-4o")
    assert bare(served).closed == [None]
    assert table.served == ()
    with pytest.raises(NotFoundError, match="not loaded; loaded: none"):
        await table.unload("alpha")


async def test_models_have_their_name_and_their_aliases(table: ModelTable) -> None:
    assert table.names_of((await table.resolve("alpha")).name) == ["alpha", "gpt-4o"]


async def test_an_alias_for_many_names_is_no_name_of_its_model(tmp_path: Path, table: ModelTable) -> None:
    many = ModelTable(table.store, {"claude-*": "alpha"}, residents_of())
    assert many.names_of((await many.resolve("claude-x")).name) == ["alpha"]


async def test_a_derived_model_is_found_by_every_kind_of_name(table: ModelTable) -> None:
    table.store.derived.save("mario", DerivedModel(base="alpha", created=0.0))
    named = ModelTable(table.store, {"hero": "mario", "plumber-*": "mario"}, residents_of())
    for asked in ("mario", "mario:latest", "mar", "hero", "plumber-2"):
        assert (await named.resolve(asked)).name == "mario"
    assert named.names_of("mario") == ["mario", "hero"]
    assert named.find_served("hero").name == "alpha"
    await named.unload("mario")
    assert named.served == ()


async def test_prefixes_of_derived_and_other_models_are_not_guessed(table: ModelTable) -> None:
    table.store.derived.save("org/beta-2", DerivedModel(base="alpha", created=0.0))
    with pytest.raises(NotFoundError, match="2 models begin with org"):
        await table.resolve("org")


async def test_paths_are_for_the_unix_socket_and_whether_they_exist_is_not_told_to_others(
    table: ModelTable, tmp_path: Path
) -> None:
    for path in (str(tmp_path), str(tmp_path / "absent")):
        with pytest.raises(
            NotFoundError, match="is a path, and paths may be given only over the Unix socket"
        ):
            await table.resolve(path)
    reasons = {
        "absent": "no such file or directory: /.*/absent",
        "x" * 5000: "cannot be read: File name too long",
    }
    for absent, reason in reasons.items():
        with pytest.raises(NotFoundError, match=reason):
            await table.resolve(str(tmp_path / absent), allow_path=True)


async def test_an_unknown_name_is_answered_with_the_command_that_lists_models(table: ModelTable) -> None:
    with pytest.raises(NotFoundError, match="there is no model alphq") as caught:
        await table.resolve("alphq")
    assert caught.value.hint.startswith("`llmd list` shows every model")
