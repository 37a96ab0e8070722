from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import ConfigError
from llmd.config import Directories, load_settings, setting_name


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[engine]\nslot = 3\n", "'engine.slot'", "engine.slots"),
        ("[engin]\nslots = 3\n", "'engin'", "engine"),
        ("slots = 3\n", "'slots'", ""),
        ("engine = 3\n", "engine must be a table", r"\[engine\]"),
        ("[engine]\nslots = 'many'\n", "engine.slots from .* is 'many', expected an integer", ""),
        ("[engine\n", "cannot be read", ""),
        ("models = 3\n", "models must be a table", r"\[models\]"),
        ("[model.guide]\n", "'model'", "models"),
        ("[models]\nguide = 3\n", "models.guide must be a table", r"\[models.guide\]"),
        ("[models.guide]\nmax_ctxt = 3\n", r"'max_ctxt' in \[models.guide\]", "max_ctx"),
        ("[models.guide]\nmax_body = 3\n", "max_body cannot differ between models", r"\[server\]"),
        ("[models.a2.5]\nslots = 3\n", "the table of the model 'a2' contains a table '5'", 'models."a2.5"'),
        ("[models.'a/b']\nslots = 0\n", 'models."a/b".slots from .* is 0, expected an integer', ""),
    ],
)
def test_refuses_a_faulty_file_by_name(directories: Directories, text: str, message: str, hint: str) -> None:
    directories.user_config.parent.mkdir()
    directories.user_config.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        load_settings(environ={}, directories=directories)
    assert str(directories.user_config) in caught.value.message
    assert hint.strip("\\[]") in caught.value.hint


def test_refuses_unknown_flags_with_the_nearest_name(directories: Directories) -> None:
    with pytest.raises(ConfigError, match="--max-cxt") as caught:
        load_settings({"max_cxt": 3}, environ={}, directories=directories)
    assert caught.value.hint == "the nearest name is max_ctx"


def test_unknown_variables_are_told_with_the_nearest_name_and_end_nothing(directories: Directories) -> None:
    environ = {
        "LLMD_SLOT": "3",
        "LLMD_MAX_CTX": "64",
        "LLMD_ZZZZZZZZ": "1",
        "LLMD_EMPTY": "",
        "LLMD_TEST_MODEL": "x",
        "LLMDSLOT": "3",
        "PATH": "/bin",
    }
    settings = load_settings(environ=environ, directories=directories)
    assert (settings.config.engine.slots, settings.config.engine.max_ctx) == (8, 64)
    assert [(one.name, one.hint) for one in settings.unknown] == [
        ("LLMD_SLOT", "the nearest name is LLMD_SLOTS"),
        ("LLMD_ZZZZZZZZ", "`llmd config show` lists every setting"),
    ]


def test_known_variables_are_not_told(directories: Directories, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("")
    environ = {"LLMD_CONFIG": str(tmp_path / "mine.toml"), "LLMD_API_KEY": "k", "LLMD_SLOTS": "2"}
    assert load_settings(environ=environ, directories=directories).unknown == ()


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('[server]\nhost = "0.0.0.0"', "llmd serve --addr HOST:PORT"),
        ("[server]\nport = 9000", "llmd serve --addr HOST:PORT"),
        ("[engine]\nctx_size = 4096", "llmd calls it max_ctx"),
        ("[models.guide]\nmax_num_seqs = 4", "llmd calls it slots"),
    ],
)
def test_names_of_other_tools_are_answered_in_a_file(directories: Directories, text: str, hint: str) -> None:
    directories.user_config.parent.mkdir(parents=True, exist_ok=True)
    directories.user_config.write_text(text)
    with pytest.raises(ConfigError, match="unknown setting") as caught:
        load_settings(environ={}, directories=directories)
    assert hint in caught.value.hint


def test_names_of_other_tools_are_answered_in_the_environment(directories: Directories) -> None:
    (unknown,) = load_settings(environ={"LLMD_MAX_MODEL_LEN": "4096"}, directories=directories).unknown
    assert (unknown.name, unknown.hint) == ("LLMD_MAX_MODEL_LEN", "llmd calls it max_ctx")


def test_names_of_models_are_written_as_in_the_file() -> None:
    names = [setting_name("engine.slots", model) for model in (None, "guide", "org/m-2.5", 'a"b')]
    assert names == ["engine.slots", "models.guide.slots", 'models."org/m-2.5".slots', 'models."a\\"b".slots']
