from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from llmd.api.errors import ConfigError
from llmd.config import Config, Directories, Settings, load_settings


@pytest.fixture
def directories(tmp_path: Path) -> Directories:
    return Directories(
        config=tmp_path / "user",
        data=tmp_path / "data",
        state=tmp_path / "state",
        cache=tmp_path / "cache",
        user_socket=tmp_path / "llmd.sock",
        system_config=tmp_path / "system.toml",
    )


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def slots_of(settings: Settings) -> tuple[int, str]:
    origin = settings.origins["engine.slots"]
    assert settings.config.engine.slots == origin.value
    return settings.config.engine.slots, origin.source


def test_each_source_overrides_the_weaker_ones(directories: Directories) -> None:
    def load(flags: dict[str, object], environ: dict[str, str]) -> tuple[int, str]:
        return slots_of(load_settings(flags, environ=environ, directories=directories))

    assert load({}, {}) == (8, "default")
    write(directories.system_config, "[engine]\nslots = 2\n")
    assert load({}, {}) == (2, str(directories.system_config))
    write(directories.user_config, "[engine]\nslots = 3\n")
    assert load({}, {}) == (3, str(directories.user_config))
    assert load({}, {"LLMD_SLOTS": "4"}) == (4, "LLMD_SLOTS")
    assert load({"slots": 5}, {"LLMD_SLOTS": "4"}) == (5, "--slots")
    assert load({"slots": None}, {"LLMD_SLOTS": "4"}) == (4, "LLMD_SLOTS")


def test_every_setting_has_an_origin_and_a_name_of_its_own(directories: Directories) -> None:
    origins = load_settings(environ={}, directories=directories).origins
    names = Counter(key.partition(".")[2] for key in origins)
    assert max(names.values()) == 1
    assert {key.partition(".")[0] for key in origins} == set(Config.__struct_fields__)
    assert {origin.source for origin in origins.values()} == {"default"}


def test_named_file_replaces_the_users_file_and_must_exist(directories: Directories, tmp_path: Path) -> None:
    write(directories.user_config, "[engine]\nslots = 3\n")
    assert load_settings(environ={}, directories=directories).user_file == directories.user_config
    other = tmp_path / "other.toml"
    with pytest.raises(ConfigError, match=r"other\.toml does not exist"):
        load_settings(environ={}, directories=directories, file=other)
    write(other, "[engine]\ndevice = 'cpu'\n")
    settings = load_settings(environ={"LLMD_CONFIG": str(other)}, directories=directories)
    assert settings.config.engine.device == "cpu"
    assert settings.user_file == other
    assert slots_of(settings) == (8, "default")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[engine]\nslot = 3\n", "'engine.slot'", "engine.slots"),
        ("[engin]\nslots = 3\n", "'engin'", "engine"),
        ("slots = 3\n", "'slots'", ""),
        ("engine = 3\n", "engine must be a table", r"\[engine\]"),
        ("[engine]\nslots = 'many'\n", "engine.slots from .* is 'many', expected an integer", ""),
        ("[engine\n", "cannot be read", ""),
    ],
)
def test_refuses_a_faulty_file_by_name(directories: Directories, text: str, message: str, hint: str) -> None:
    write(directories.user_config, text)
    with pytest.raises(ConfigError, match=message) as caught:
        load_settings(environ={}, directories=directories)
    assert str(directories.user_config) in caught.value.message
    assert hint.strip("\\[]") in caught.value.hint


def test_refuses_unknown_variables_and_flags_with_the_nearest_name(directories: Directories) -> None:
    with pytest.raises(ConfigError, match="LLMD_SLOT") as caught:
        load_settings(environ={"LLMD_SLOT": "3"}, directories=directories)
    assert "LLMD_SLOTS" in caught.value.hint
    with pytest.raises(ConfigError, match="--max-cxt"):
        load_settings({"max_cxt": 3}, environ={}, directories=directories)


def test_ignores_variables_of_others_empty_ones_and_those_of_the_test_suite(directories: Directories) -> None:
    environ = {"PATH": "/bin", "LLMD_SLOTS": "", "LLMD_TEST_MODEL": "/models/x"}
    assert slots_of(load_settings(environ=environ, directories=directories)) == (8, "default")


def test_ill_typed_value_names_value_form_and_source(directories: Directories) -> None:
    with pytest.raises(
        ConfigError, match=r"engine\.slots from LLMD_SLOTS is '0', expected an integer of at least 1"
    ):
        load_settings(environ={"LLMD_SLOTS": "0"}, directories=directories)


def test_reads_the_process_environment_by_default(
    directories: Directories, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLMD_DEVICE", "reference")
    assert load_settings(directories=directories).config.engine.device == "reference"
