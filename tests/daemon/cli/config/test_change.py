from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from llmd.api.errors import ConfigError
from llmd.cli.config.change import chosen_file, setting_key, toml_path, typed_value

Llmd = Callable[..., Any]


@pytest.mark.parametrize("name", ["max_ctx", "engine.max_ctx", "--max-ctx", "max-ctx", "LLMD_MAX_CTX"])
def test_a_setting_has_several_names(name: str) -> None:
    assert setting_key(name) == "engine.max_ctx"


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="'max_cxt'") as caught:
        setting_key("max_cxt")
    assert caught.value.hint == "the nearest name is max_ctx"


def test_settings_of_models_are_in_their_table() -> None:
    assert toml_path("engine.slots", None) == ("engine", "slots")
    assert toml_path("engine.slots", "org/a") == ("models", "org/a", "slots")


@pytest.mark.parametrize(
    ("key", "texts", "value"),
    [
        ("engine.slots", ["3"], 3),
        ("engine.kv_memory", ["4GiB"], "4GiB"),
        ("engine.kv_memory", ["17"], 17),
        ("server.keep_alive", ["1h30m"], "1h30m"),
        ("server.keep_alive", ["-1"], -1),
        ("server.no_auth", ["true"], True),
        ("server.drain_s", ["0.5"], 0.5),
        ("engine.device", ["3"], "3"),
        ("server.addr", ["127.0.0.1:1,unix:/x"], ["127.0.0.1:1", "unix:/x"]),
        ("server.addr", ["127.0.0.1:1", "unix:/x"], ["127.0.0.1:1", "unix:/x"]),
    ],
)
def test_values_are_written_as_they_were_typed(key: str, texts: list[str], value: Any) -> None:
    assert typed_value(key, texts) == value


def test_wrong_values_and_several_for_one_are_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"engine\.kv_dtype .* 'f8', expected one of bf16, f16, f32"
    ) as caught:
        typed_value("engine.kv_dtype", ["f8"])
    assert "nothing was changed" in caught.value.hint
    with pytest.raises(click.UsageError, match="has one value, not 2"):
        typed_value("engine.slots", ["1", "2"])


def test_the_file_is_the_users_or_a_named_one(llmd: Llmd, file: Path, tmp_path: Path) -> None:
    assert chosen_file(None, system=False) == file
    assert chosen_file(tmp_path / "other", system=False) == tmp_path / "other"
    assert str(chosen_file(None, system=True)) == "/etc/llmd/config.toml"
    with pytest.raises(click.UsageError):
        chosen_file(tmp_path / "other", system=True)
