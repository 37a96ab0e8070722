from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from llmd.api.errors import ConfigError
from llmd.config import Config, Directories, Settings, load_settings


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


def test_what_a_source_says_of_one_model_wins_over_what_it_says_of_all_and_a_stronger_source_over_both(
    directories: Directories,
) -> None:
    def own(environ: dict[str, str]) -> tuple[int, int, str]:
        settings = load_settings(environ=environ, directories=directories)
        origin = settings.models["org/m-2.5"]["engine.slots"]
        assert settings.of_model("org/m-2.5").engine.slots == origin.value
        assert settings.of_model("another") == settings.config
        return origin.value, settings.config.engine.slots, origin.source

    write(directories.system_config, '[models."org/m-2.5"]\nslots = 2\n[engine]\nslots = 3\n')
    assert own({}) == (2, 3, str(directories.system_config))
    write(directories.user_config, "[engine]\nslots = 4\n")
    assert own({}) == (4, 4, str(directories.user_config))
    write(directories.user_config, '[models."org/m-2.5"]\nslots = 5\n')
    assert own({}) == (5, 3, str(directories.user_config))
    assert own({"LLMD_SLOTS": "6"}) == (6, 6, "LLMD_SLOTS")


def test_a_model_has_settings_of_every_section_beside_those_of_all(directories: Directories) -> None:
    text = "[server]\ntool_parser = 'none'\n[models.guide]\nkeep_alive = '1h'\nkv_memory = '1MiB'\n"
    write(directories.user_config, text)
    found = load_settings(environ={}, directories=directories).of_model("guide")
    assert (found.server.models.keep_alive, found.engine.kv_memory) == (3600.0, 1 << 20)
    assert (found.server.models.tool_parser, found.server.models.reasoning_parser) == ("none", "auto")


@pytest.mark.parametrize(
    ("text", "flags", "is_explicit"),
    [
        ("", {}, False),
        ("[engine]\nquant = 'q4'", {}, False),
        ("[models.guide]\nquant = 'q4'", {}, True),
        ("[models.other]\nquant = 'q4'", {}, False),
        ("[models.guide]\nquant = 'q4'", {"quant": "q8"}, True),
        ("", {"quant": "q8"}, True),
    ],
)
def test_a_setting_is_explicit_for_a_model_if_it_was_set_for_it_or_with_a_flag(
    directories: Directories, text: str, flags: dict[str, str], *, is_explicit: bool
) -> None:
    write(directories.user_config, text)
    settings = load_settings(flags, environ={}, directories=directories)
    assert settings.is_explicit("engine.quant", "guide") == is_explicit
    environ = {"LLMD_QUANT": "q3"}
    if not flags:
        settings = load_settings(environ=environ, directories=directories)
        assert not settings.is_explicit("engine.quant", "guide")


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


def test_values_of_a_file_know_their_line(directories: Directories) -> None:
    write(directories.user_config, "[engine]\n\nslots = 3\n")
    settings = load_settings(environ={}, directories=directories)
    assert settings.origins["engine.slots"].place == f"{directories.user_config}:3"


def test_who_takes_reports_gets_every_error_and_the_values_that_are_right(directories: Directories) -> None:
    write(directories.system_config, "[engine]\nslots = 'x'\n")
    write(directories.user_config, "[engine]\nslot = 3\nmax_ctx = 9\n")
    errors: list[ConfigError] = []
    environ = {"LLMD_THREADS": "0"}
    settings = load_settings(environ=environ, directories=directories, report=errors.append)
    assert (settings.config.engine.max_ctx, settings.config.engine.slots) == (9, 8)
    assert [(error.line, error.message.split()[0]) for error in errors] == [
        (2, "engine.slots"),
        (2, "unknown"),
        (None, "engine.threads"),
    ]


@pytest.mark.parametrize(
    ("variable", "text"), [("LLMD_ADDR", "ftp://x"), ("LLMD_ADDR", "127.0.0.1:1,a:b"), ("LLMD_HOST", "a b/c")]
)
def test_addresses_are_checked_where_they_are_set(directories: Directories, variable: str, text: str) -> None:
    with pytest.raises(ConfigError, match=rf"from {variable} is "):
        load_settings(environ={variable: text}, directories=directories)
