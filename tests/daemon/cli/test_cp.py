"""`llmd cp` gives a model a second name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.serving.model import write_model

Llmd = Callable[..., Any]


@pytest.fixture(autouse=True)
def models(tmp_path: Path) -> Path:
    models = tmp_path / "data" / "llmd" / "models"
    write_model(models / "tiny")
    return models


def names(llmd: Llmd) -> set[str]:
    return {row["name"] for row in json.loads(llmd("list", "--json").out)["models"] if not row["reason"]}


def test_a_model_gets_another_name_and_outlives_the_first(llmd: Llmd, models: Path) -> None:
    assert llmd("cp", "tiny", "org/mine").code == 0
    assert llmd("copy", "org/mine", "again").code == 0
    assert llmd("rm", "org/mine").code == 0
    assert names(llmd) == {"guide", "tiny", "again"}
    blobs = list((models / ".store" / "blobs").iterdir())
    assert len(blobs) == len(list((models / "tiny").iterdir()))


def test_a_directory_and_the_guide_can_be_copied(llmd: Llmd, tmp_path: Path) -> None:
    write_model(tmp_path / "elsewhere")
    assert llmd("cp", str(tmp_path / "elsewhere"), "mine").code == 0
    assert llmd("cp", "guide", "my-guide").code == 0
    assert names(llmd) == {"guide", "tiny", "mine", "my-guide"}


@pytest.mark.parametrize(
    ("source", "name", "code"),
    [("tiny", "tiny", 9), ("tiny", "guide", 9), ("tiny", "../x", 2), ("absent", "x", 3)],
)
def test_names_that_cannot_be_given_are_refused(llmd: Llmd, source: str, name: str, code: int) -> None:
    assert llmd("cp", source, name).code == code
