"""`llmd list` shows the models in the store, and what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from llmd.cli.list import parameters
from llmd.registry.derived import DerivedModel
from llmd.registry.store import Store
from llmd.registry.stored_model import StoredModel
from tests.serving.adapters import use_adapters
from tests.serving.model import write_model

Llmd = Callable[..., Any]


def test_lists_the_guide_and_the_directories_below_models(llmd: Llmd, tmp_path: Path) -> None:
    models = tmp_path / "data" / "llmd" / "models"
    write_model(models / "tiny")
    (models / "broken").mkdir()
    (models / "broken" / "config.json").write_text("{")
    rows = {row["name"]: row for row in json.loads(llmd("list", "--json").out)["models"]}
    assert rows.keys() == {"guide", "tiny", "broken"}
    assert rows["guide"]["builtin"]
    assert rows["tiny"]["context_len"] == 512
    assert rows["tiny"]["directory"] == str(models / "tiny")
    assert "config.json" in rows["broken"]["reason"]
    lines = llmd("ls", "--plain", "--columns", "NAME,FORMAT,SOURCE").out.splitlines()
    assert f"tiny\tf32\t{models / 'tiny'}" in lines
    assert any(line.startswith("guide\t") and line.endswith("\tbuilt in") for line in lines)


def test_derived_models_are_listed_with_what_they_are_derived_from(llmd: Llmd, tmp_path: Path) -> None:
    models = tmp_path / "data" / "llmd" / "models"
    write_model(models / "tiny")
    Store(models, {}).derived.save("mario", DerivedModel(base="tiny", created=0.0))
    lines = llmd("list", "--plain", "--columns", "NAME,SOURCE").out.splitlines()
    assert "mario\tderived from tiny" in lines


def test_adapters_of_the_configuration_are_listed_with_their_model(llmd: Llmd, tmp_path: Path) -> None:
    write_model(tmp_path / "data" / "llmd" / "models" / "tiny")
    use_adapters(tmp_path / "config" / "llmd", "tiny", [tmp_path / "sql"])
    lines = llmd("list", "--plain", "--columns", "NAME,SOURCE").out.splitlines()
    assert "sql\tderived from tiny" in lines


@pytest.mark.parametrize(
    ("count", "shown"),
    [(8_030_000_000, "8.0B"), (5_400_000, "5.4M"), (119_488, "119.5K"), (12, "12"), (0, "")],
)
def test_parameters_are_counted_in_thousands(count: int, shown: str) -> None:
    model = StoredModel("m", Path("m"), datetime.now(UTC), num_parameters=count)
    assert parameters(model) == shown
