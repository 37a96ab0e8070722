from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import NotFoundError
from llmd.registry.derived import DerivedModel
from llmd.registry.store import Store
from llmd.server.models.derived_model import DerivedServedModel
from llmd.server.models.model_table import ModelTable
from tests.serving.http import chat, send
from tests.serving.model import write_model
from tests.serving.model_managers import residents_of
from tests.serving.running import MODEL, directories_below, running_daemon


async def test_derived_name_means_the_base_with_changes(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / "tiny")
    store = Store(tmp_path / "models", {})
    record = DerivedModel(base="tiny", created=0.0, system="Be Mario.")
    store.derived.save("mario", record)
    store.derived.save("orphan", DerivedModel(base="gone", created=0.0))
    table = ModelTable(store, {}, residents_of())
    found = await table.resolve("mario:latest")
    assert isinstance(found, DerivedServedModel)
    assert (found.name, found.record, found.base.name) == ("mario", record, "tiny")
    assert found.base is await table.resolve("tiny")
    with pytest.raises(NotFoundError, match="gone"):
        await table.resolve("orphan")


def test_every_dialect_answers_as_the_derived_model_with_one_engine(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    record = DerivedModel(base=MODEL, created=0.0, system="Be Mario.", parameters={"stop": ["q"]})
    Store(directories.models, {}).derived.save("mario", record)
    system = {"role": "system", "content": "Be Mario."}
    with running_daemon(directories) as daemon:
        derived = chat(daemon, model="mario").json
        told = chat(daemon, messages=[system, {"role": "user", "content": "Hello"}], stop=["q"]).json
        assert derived["choices"] == told["choices"]
        assert derived["usage"]["prompt_tokens"] == told["usage"]["prompt_tokens"]
        body = {"model": "mario", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8}
        counted = send(daemon, "POST", "/v1/messages/count_tokens", body).json
        assert counted["input_tokens"] == told["usage"]["prompt_tokens"]
        names = {entry["id"]: entry for entry in send(daemon, "GET", "/v1/models").json["data"]}
        assert names["mario"]["parent"] == MODEL
        assert [row["name"] for row in send(daemon, "GET", "/llmd/ps").json["models"]] == [MODEL]


def test_a_derived_model_has_its_own_keep_alive(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    derived = Store(directories.models, {}).derived
    for name in ("mario", "luigi"):
        derived.save(name, DerivedModel(base=MODEL, created=0.0))
    directories.config.mkdir()
    directories.user_config.write_text('[server]\nkeep_alive = "1h"\n[models.mario]\nkeep_alive = -1\n')
    with running_daemon(directories, models=()) as daemon:

        def stays_for_ever(name: str) -> bool:
            assert chat(daemon, model=name).status == 200
            (row,) = send(daemon, "GET", "/llmd/ps", unix=True).json["models"]
            return row["expires_at"] is None

        assert [stays_for_ever(name) for name in (MODEL, "mario", "luigi")] == [False, True, False]
    with running_daemon(directories, models=("mario",)) as daemon:
        assert stays_for_ever("mario")
