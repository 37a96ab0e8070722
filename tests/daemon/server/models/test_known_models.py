from __future__ import annotations

import shutil
from pathlib import Path

from llmd.registry.derived import DerivedModel
from llmd.registry.store import Store
from llmd.server.models.known_models import described_models, known_model, known_models
from llmd.server.models.model_table import ModelTable
from tests.serving.model import write_model
from tests.serving.model_managers import residents_of


async def test_usable_models_of_store_path_and_alias_are_known(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / "stored")
    outside = write_model(tmp_path / "outside")
    (tmp_path / "models" / "broken").mkdir()
    (tmp_path / "models" / "broken" / "config.json").write_text("{")
    aliases = {"gpt-4o": "stored", "dead": "gone", "claude-*": "stored"}  # a pattern is no name
    table = ModelTable(Store(tmp_path / "models", {}), aliases, residents_of())
    await table.resolve(str(outside), allow_path=True)
    derived = table.store.derived
    derived.save("mario", DerivedModel(base="stored", created=5.0))
    derived.save("orphan", DerivedModel(base="gone", created=5.0))
    models = known_models(table)
    assert [model.name for model in models] == ["stored", "outside", "gpt-4o", "mario"]
    mario = models[-1]
    assert (mario.stored.name, mario.modified.year) == ("stored", 1970)
    assert known_model(table, "mario:latest", allow_path=False) == mario
    assert known_model(table, "gpt-4o", allow_path=False).stored == models[0].stored


async def test_a_model_given_by_path_stays_known_until_its_files_are_gone(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / "stored")
    outside = write_model(tmp_path / "outside")
    table = ModelTable(Store(tmp_path / "models", {}), {}, residents_of())
    assert [model.name for model in described_models(table)] == ["stored"]
    await table.resolve(str(outside), allow_path=True)
    await table.unload("outside")
    assert [(model.name, model.directory) for model in described_models(table)][1:] == [("outside", outside)]
    assert [model.name for model in known_models(table)] == ["stored", "outside"]
    shutil.rmtree(outside)
    assert described_models(table)[1].reason
    assert [model.name for model in known_models(table)] == ["stored"]


async def test_a_copy_of_a_model_given_by_path_has_the_name_of_its_base(tmp_path: Path) -> None:
    outside = write_model(tmp_path / "outside")
    table = ModelTable(Store(tmp_path / "models", {}), {}, residents_of())
    table.store.derived.save("copy", DerivedModel(base=str(outside), created=5.0))
    (copy,) = known_models(table)
    assert (copy.name, copy.stored.name, copy.stored.directory) == ("copy", "outside", outside)
