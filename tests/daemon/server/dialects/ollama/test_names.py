from __future__ import annotations

from pathlib import Path

import pytest

from llmd.registry.store import Store
from llmd.server.dialects.ollama.names import known_models, read_name
from llmd.server.errors import BadRequestError
from llmd.server.model_table import ModelTable
from llmd.server.request_fields import RequestFields
from tests.serving.model import write_model
from tests.serving.residents import residents_of


def test_model_may_be_called_name() -> None:
    assert read_name(RequestFields({"name": "a"})) == "a"
    assert read_name(RequestFields({"name": "a", "model": "b"})) == "b"
    with pytest.raises(BadRequestError, match="model is required"):
        read_name(RequestFields({"model": ""}))


async def test_usable_models_of_store_path_and_alias_are_known(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / "stored")
    outside = write_model(tmp_path / "outside")
    (tmp_path / "models" / "broken").mkdir()
    (tmp_path / "models" / "broken" / "config.json").write_text("{")
    table = ModelTable(Store(tmp_path / "models", {}), {"gpt-4o": "stored", "dead": "gone"}, residents_of())
    await table.resolve(str(outside), allow_path=True)
    assert [model.name for model in known_models(table)] == ["stored", "outside", "gpt-4o"]
