from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmd.api.errors import ConflictError, DiskSpaceError, HubError, NotFoundError, UnsupportedModelError
from llmd.models.shards import INDEX_FILE
from llmd.registry.download import Downloader
from llmd.registry.hub import Hub
from llmd.registry.names import parse_hub_name
from llmd.registry.pull import SPARE_BYTES, PullStep, pull
from llmd.registry.pulled_models import PulledModels
from llmd.registry.store import Store
from tests.corrupt import small_model
from tests.golden.gguf_layout import write_gguf
from tests.golden.meta_layout import write_mistral
from tests.golden.models.catalog import tiny_model
from tests.serving import hub as hubs
from tests.serving.hub import Repository

NAME = "org/name"
OTHER_COMMIT = "2" * 40


@pytest.fixture
def original(tmp_path: Path) -> Path:
    return small_model.write_small_model(tmp_path / "original")


@pytest.fixture(autouse=True)
def repository(hub: hubs.Hub, original: Path) -> Repository:
    hub.repositories[NAME] = Repository.of(original)
    return hub.repositories[NAME]


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def library(models: Path) -> PulledModels:
    return PulledModels(models, ("guide",))


def run(hub: hubs.Hub, library: PulledModels, name: str = NAME, *, free: int = 1 << 40) -> list[PullStep]:
    steps = pull(
        parse_hub_name(name),
        Hub(hub.url),
        library,
        make_downloader=lambda blobs, opener: Downloader(blobs, opener, lambda _seconds: None),
        free_bytes=lambda _path: free,
    )
    return list(steps)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_a_pulled_model_is_a_plain_directory_of_the_store(
    hub: hubs.Hub, library: PulledModels, models: Path, original: Path
) -> None:
    run(hub, library)
    assert contents(models / NAME) == contents(original)
    (model,) = Store(models, {}).list()
    assert (model.name, model.source, model.commit, model.reason) == (NAME, NAME, hubs.COMMIT, "")


def test_a_model_in_mistrals_layout_is_pulled_where_there_is_no_other(
    hub: hubs.Hub, library: PulledModels, models: Path, tmp_path: Path
) -> None:
    mistral = write_mistral(tiny_model("mistral-no-window"), tmp_path / "mistral")
    (mistral / "tekken.json").write_text("{}")
    (mistral / "README.md").write_text("not needed")
    hub.repositories[NAME] = Repository.of(mistral)
    run(hub, library)
    assert contents(models / NAME).keys() == contents(mistral).keys() - {"README.md"}
    (model,) = Store(models, {}).list()
    assert (model.architecture, model.reason) == ("MistralForCausalLM", "")


def test_only_what_is_needed_is_asked_for(hub: hubs.Hub, library: PulledModels) -> None:
    run(hub, library)
    asked = {path.rpartition("/")[2] for path in hub.asked if "/resolve/" in path}
    assert asked == {"config.json", "tokenizer.json", "model.safetensors"}


def test_every_step_is_told_in_the_words_of_ollama(hub: hubs.Hub, library: PulledModels) -> None:
    steps = run(hub, library)
    assert [step.status for step in (steps[0], *steps[-2:])] == [
        "pulling manifest",
        "writing manifest",
        "success",
    ]
    weights = [step for step in steps if step.file == "model.safetensors"]
    assert {(step.status, step.digest) for step in weights} == {
        (f"pulling {weights[0].digest[7:19]}", weights[0].digest)
    }
    assert weights[0].completed == 0 < weights[-1].completed == weights[-1].total
    assert steps[-1].model == NAME


def test_a_model_that_is_here_is_not_fetched_again(hub: hubs.Hub, library: PulledModels) -> None:
    run(hub, library)
    hub.asked.clear()
    assert [step.status for step in run(hub, library)] == ["pulling manifest", "success"]
    assert hub.asked == [f"/api/models/{NAME}"]


def test_a_new_version_takes_the_place_of_the_old_and_shares_what_stayed(
    hub: hubs.Hub, library: PulledModels, models: Path, repository: Repository
) -> None:
    run(hub, library)
    files = repository.commits[hubs.COMMIT] | {"config.json": b'{"changed": true}'}
    repository.add("main", OTHER_COMMIT, files)
    hub.sent.clear()
    run(hub, library)
    assert (models / NAME / "config.json").read_bytes() == b'{"changed": true}'
    assert set(hub.sent) == {"config.json"}
    assert len(list(library.blobs.folder.iterdir())) == 3


def test_a_pinned_version_stands_beside_the_newest(
    hub: hubs.Hub, library: PulledModels, models: Path, repository: Repository
) -> None:
    repository.add("v2", OTHER_COMMIT, repository.commits[hubs.COMMIT] | {"config.json": b"{}"})
    run(hub, library)
    assert run(hub, library, f"{NAME}@v2")[-1].model == f"{NAME}@v2"
    assert (models / f"{NAME}@v2" / "config.json").read_bytes() == b"{}"
    assert {model.name for model in Store(models, {}).list()} == {NAME, f"{NAME}@v2"}
    with pytest.raises(NotFoundError, match="no revision v3"):
        run(hub, library, f"{NAME}@v3")


def test_shards_are_those_that_the_index_names(
    hub: hubs.Hub, library: PulledModels, models: Path, original: Path, repository: Repository
) -> None:
    small_model.write_sharded(original)
    extra = {"model-of-another-index.safetensors": b"not needed"}
    repository.add("main", OTHER_COMMIT, {**contents(original), **extra})
    run(hub, library)
    assert contents(models / NAME) == contents(original)
    del repository.commits[OTHER_COMMIT][small_model.SHARDS[1]]
    repository.add("main", "3" * 40, {**repository.commits[OTHER_COMMIT], "config.json": b"{}"})
    with pytest.raises(UnsupportedModelError, match="lacks model-00002-of-00002"):
        run(hub, library)


def test_a_pull_that_broke_off_goes_on_where_it_was(
    hub: hubs.Hub, library: PulledModels, models: Path
) -> None:
    hub.cut_after["model.safetensors"] = [2000, *[0] * 5]
    with pytest.raises(HubError, match="downloaded data is kept"):
        run(hub, library)
    assert not (models / NAME).exists()
    hub.cut_after.clear()
    hub.ranges.clear()
    steps = run(hub, library)
    assert hub.ranges[-1] == "bytes=2000-"
    verifying = next(step for step in steps if step.status.startswith("verifying"))
    assert verifying.status == "verifying sha256 digest"
    weights = [step.completed for step in steps if step.file == "model.safetensors" and step.total]
    assert weights[0] == 2000


def test_bytes_that_change_on_the_way_are_fetched_again_and_never_believed(
    hub: hubs.Hub, library: PulledModels, models: Path, original: Path
) -> None:
    hub.damaged["model.safetensors"] = 1
    run(hub, library)
    assert contents(models / NAME) == contents(original)
    library.remove(NAME)
    hub.damaged["config.json"] = 9
    with pytest.raises(HubError, match=r"config.json was downloaded twice, and its hash never matched"):
        run(hub, library)
    assert not (models / NAME).exists()


def test_what_cannot_fit_is_not_begun_and_the_numbers_are_said(hub: hubs.Hub, library: PulledModels) -> None:
    with pytest.raises(
        DiskSpaceError, match=r"the model has [\d.]+ \w+, of which 0 B are downloaded already; .* are missing"
    ):
        run(hub, library, free=SPARE_BYTES + 5000)
    assert hub.sent == {}


def test_what_is_here_already_needs_no_room(hub: hubs.Hub, library: PulledModels) -> None:
    hub.cut_after["model.safetensors"] = [9000, *[0] * 5]
    with pytest.raises(HubError):
        run(hub, library)
    hub.cut_after.clear()
    # The hub has no SHA-256 for the small files, so they are counted and downloaded again.
    files = hub.repositories[NAME].commits[hubs.COMMIT]
    missing = sum(map(len, (files["config.json"], files["model.safetensors"]))) - 9000
    with pytest.raises(DiskSpaceError, match="are missing"):
        run(hub, library, free=missing + SPARE_BYTES - 1)
    assert run(hub, library, free=missing + SPARE_BYTES)[-1].status == "success"


def test_pickled_weights_are_never_fetched(
    hub: hubs.Hub, library: PulledModels, repository: Repository
) -> None:
    repository.add("main", OTHER_COMMIT, {"config.json": b"{}", "pytorch_model.bin": b"pickle"})
    with pytest.raises(UnsupportedModelError, match=r"only pytorch_model.bin"):
        run(hub, library)


def test_a_name_that_is_taken_is_refused_before_the_hub_is_asked(
    hub: hubs.Hub, library: PulledModels, models: Path
) -> None:
    (models / NAME).mkdir(parents=True)
    with pytest.raises(ConflictError, match="did not download"):
        run(hub, library)
    assert hub.asked == []


def test_an_index_that_is_broken_is_refused(
    hub: hubs.Hub, library: PulledModels, repository: Repository
) -> None:
    repository.add("main", OTHER_COMMIT, {"config.json": b"{}", INDEX_FILE: json.dumps([]).encode()})
    with pytest.raises(UnsupportedModelError, match="lists no safetensors files"):
        run(hub, library)


def test_of_gguf_files_the_one_that_is_asked_for_comes(
    hub: hubs.Hub, library: PulledModels, models: Path, tmp_path: Path
) -> None:
    written = write_gguf(tiny_model("llama2-mha"), tmp_path / "m-Q8_0.gguf", num_parts=2)
    parts = {f"Q8_0/{path.name}": path.read_bytes() for path in sorted(tmp_path.glob("m-Q8_0-*"))}
    others = {"m-Q4_K_M.gguf": b"other", "README.md": b"#", "LICENSE": b"free", "config.json": b"{}"}
    hub.repositories[NAME] = Repository({**parts, **others})
    steps = run(hub, library, f"{NAME}:q8_0")
    assert steps[-1] == PullStep("success", model=f"{NAME}:Q8_0")
    directory = models / f"{NAME}:Q8_0"
    assert sorted(contents(directory)) == ["LICENSE", *sorted(path.partition("/")[2] for path in parts)]
    known = Store(models, {}).find(f"{NAME}:Q8_0", allow_path=False)
    assert (known.reason, known.file_format, known.source) == ("", "gguf", NAME)
    assert written.name in contents(directory)


def test_without_other_weights_the_usual_quantisation_comes(
    hub: hubs.Hub, library: PulledModels, models: Path
) -> None:
    hub.repositories[NAME] = Repository({"m-Q8_0.gguf": b"large", "m-Q4_K_M.gguf": b"small"})
    run(hub, library)
    assert contents(models / NAME) == {"m-Q4_K_M.gguf": b"small"}


def test_safetensors_come_before_gguf_files(
    hub: hubs.Hub, library: PulledModels, models: Path, original: Path
) -> None:
    (original / "m-Q4_K_M.gguf").write_bytes(b"small")
    hub.repositories[NAME] = Repository.of(original)
    run(hub, library)
    assert "model.safetensors" in contents(models / NAME)
    assert "m-Q4_K_M.gguf" not in contents(models / NAME)
