"""`llmd cp` gives a model a second name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.serving.gguf_model import write_gguf_model
from tests.serving.model import write_model
from tests.serving.pulled import install_pulled

Llmd = Callable[..., Any]


@pytest.fixture(autouse=True)
def models(tmp_path: Path) -> Path:
    models = tmp_path / "data" / "llmd" / "models"
    write_model(models / "tiny")
    return models


def names(llmd: Llmd) -> set[str]:
    return {row["name"] for row in json.loads(llmd("list", "--json").out)["models"] if not row["reason"]}


def test_a_model_gets_another_name_and_outlives_the_first(llmd: Llmd, models: Path) -> None:
    install_pulled(models, "pulled", models / "tiny")
    assert llmd("cp", "pulled", "org/mine").code == 0
    assert llmd("copy", "org/mine", "again").code == 0
    blobs = len(list((models / ".store" / "blobs").iterdir()))
    assert llmd("rm", "pulled", "org/mine").code == 0
    assert names(llmd) == {"guide", "tiny", "again"}
    assert (
        blobs == len(list((models / ".store" / "blobs").iterdir())) == len(list((models / "tiny").iterdir()))
    )


def test_own_directories_files_and_the_guide_are_not_copied(llmd: Llmd, models: Path, tmp_path: Path) -> None:
    elsewhere = write_model(tmp_path / "elsewhere")
    file = write_gguf_model(tmp_path / "file.gguf")
    before = {path for path in models.rglob("*") if path.is_file()}
    sources = {"mine": str(elsewhere), "other": "tiny", "gguf": str(file), "my-guide": "guide"}
    for name, source in sources.items():
        assert llmd("cp", source, name).code == 0
    assert names(llmd) == {"guide", "tiny", *sources}
    records = {path for path in models.rglob("*") if path.is_file()} - before
    assert sum(path.stat().st_size for path in records) < 1000
    assert llmd("rm", "mine").code == 0
    assert (elsewhere / "config.json").exists()
    file.unlink()
    gone = llmd("show", "gguf")
    assert (gone.code, f"gguf is derived from {file}, which is not on this machine" in gone.err) == (3, True)


@pytest.mark.parametrize(
    ("source", "name", "code"),
    [("tiny", "tiny", 9), ("tiny", "guide", 9), ("tiny", "../x", 2), ("absent", "x", 3)],
)
def test_names_that_cannot_be_given_are_refused(llmd: Llmd, source: str, name: str, code: int) -> None:
    assert llmd("cp", source, name).code == code
