from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import NotFoundError
from llmd.registry.derived import DerivedModel
from llmd.registry.store import Store
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.ollama.names import (
    NotFoundText,
    missing_as,
    read_name,
)
from llmd.server.errors import UnknownModelError
from llmd.server.models.model_table import ModelTable
from tests.serving.model import write_model
from tests.serving.model_managers import residents_of


def test_model_may_be_called_name() -> None:
    assert read_name(RequestFields({"name": "a"})) == "a"
    assert read_name(RequestFields({"name": "a", "model": "b"})) == "b"
    with pytest.raises(BadRequestError, match="model is required"):
        read_name(RequestFields({"model": ""}))


async def test_a_base_that_is_gone_is_not_called_by_the_name_of_the_derived_model(tmp_path: Path) -> None:
    table = ModelTable(Store(tmp_path / "models", {}), {}, residents_of())
    table.store.derived.save("orphan", DerivedModel(base="gone", created=5.0))
    with (
        pytest.raises(UnknownModelError, match="there is no model gone"),
        missing_as(NotFoundText.USED, "orphan"),
    ):
        await table.resolve("orphan")
    with pytest.raises(NotFoundError) as missing, missing_as(NotFoundText.USED, "nobody"):
        await table.resolve("nobody")
    assert str(missing.value) == "model 'nobody' not found, try pulling it first"


async def test_a_prefix_of_several_models_is_told_as_such(tmp_path: Path) -> None:
    for name in ("tiny-a", "tiny-b"):
        write_model(tmp_path / "models" / name)
    table = ModelTable(Store(tmp_path / "models", {}), {}, residents_of())
    with (
        pytest.raises(NotFoundError, match="2 models begin with tiny"),
        missing_as(NotFoundText.USED, "tiny"),
    ):
        await table.resolve("tiny")
