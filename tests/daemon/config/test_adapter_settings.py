"""The setting ``lora``: which model an adapter is for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import ConfigError
from llmd.config import Settings, load_settings
from llmd.config.adapter_settings import adapters_of, all_adapters, with_adapters
from tests.serving.running import directories_below


def settings(folder: Path, text: str = "", **flags: Any) -> Settings:
    directories = directories_below(folder)
    directories.config.mkdir(parents=True, exist_ok=True)
    (directories.config / "config.toml").write_text(text)
    return load_settings(flags, environ={}, directories=directories)


def test_adapters_of_the_command_are_for_the_only_model(tmp_path: Path) -> None:
    found = with_adapters(settings(tmp_path, lora=("sql=/a", "formal=/b")), ["base"])
    assert adapters_of(found, "base") == {"sql": "/a", "formal": "/b"}
    assert adapters_of(found, "other") == {}
    assert found.of_model("other").server.models.lora == ()


@pytest.mark.parametrize("served", [[], ["base", "other"]])
def test_adapters_of_several_models_must_say_whose_they_are(tmp_path: Path, served: list[str]) -> None:
    given = settings(tmp_path, lora=("sql=/a",))
    with pytest.raises(ConfigError, match=f"which of {len(served)} models"):
        with_adapters(given, served)


def test_a_table_of_a_model_has_adapters_with_paths_relative_to_the_file(tmp_path: Path) -> None:
    found = settings(tmp_path, '[models."org/base"]\nlora = ["sql=adapters/sql", "formal=/b"]')
    directory = str(tmp_path / "config" / "adapters" / "sql")
    assert all_adapters(found) == {"sql": ("org/base", directory), "formal": ("org/base", "/b")}
    assert with_adapters(found, ["other"]) == found


def test_settings_for_all_models_add_to_those_of_the_only_one(tmp_path: Path) -> None:
    text = '[server]\nlora = ["a=/a"]\n[models.base]\nlora = ["b=/b"]'
    assert adapters_of(with_adapters(settings(tmp_path, text), ["base"]), "base") == {"b": "/b", "a": "/a"}


@pytest.mark.parametrize("entry", ["sql", "=/a", "sql=", "sql=/a,sql=/b"])
def test_a_malformed_entry_is_refused_with_its_place(tmp_path: Path, entry: str) -> None:
    found = settings(tmp_path, f'[models.base]\nlora = "{entry}"')
    with pytest.raises(ConfigError, match=r"models\.base\.lora from .*config\.toml:2"):
        all_adapters(found)


def test_two_models_cannot_have_adapters_of_one_name(tmp_path: Path) -> None:
    found = settings(tmp_path, '[models.a]\nlora = ["sql=/a"]\n[models.b]\nlora = ["sql=/b"]')
    with pytest.raises(ConfigError, match="has an adapter sql, too"):
        all_adapters(found)
