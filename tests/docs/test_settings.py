"""docs/settings.md has every setting, and its examples set what they say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from llmd.config import Directories, load_settings
from llmd.config.schema import PER_MODEL, EngineConfig
from llmd.config.setting_values import setting_fields
from tests.docs.page import CODE, DOCS, rows_with
from tools.docs.settings_page import MARK, PAGE, with_tables

TEXT = PAGE.read_text()
FILES = re.findall(r"^```toml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
VARIABLES = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def written(text: str, folder: Path) -> dict[str, object]:
    """Return the settings of a file with this text that are not defaults."""
    file = folder / "config.toml"
    file.write_text(text)
    return given(folder, file=file)


def exported(text: str, folder: Path) -> dict[str, object]:
    """Return the settings of the variables that a script exports."""
    pairs = re.findall(r'(LLMD_\w+)=(?:"([^"]*)"|(\S+))', text)
    assert pairs
    return given(folder, {name: quoted or plain for name, quoted, plain in pairs})


def given(folder: Path, environ: dict[str, str] | None = None, file: Path | None = None) -> dict[str, object]:
    directories = Directories.of({"HOME": str(folder)})
    settings = load_settings(environ=environ or {}, directories=directories, file=file)
    return {key: one.value for key, one in settings.origins.items() if one.source != "default"}


def test_the_tables_are_the_current_ones() -> None:
    assert with_tables(TEXT) == TEXT, "run `python -m tools.docs.settings_page`"
    assert with_tables(TEXT.partition(MARK)[0] + MARK + "old") == TEXT


def test_every_setting_has_one_row_with_its_variable() -> None:
    rows = rows_with(TEXT, "variable")
    names = [name for row in rows for name in CODE.findall(row["setting"])]
    assert sorted(names) == sorted(key.partition(".")[2] for key in setting_fields())
    assert all(row["variable"] == f"`LLMD_{row['setting'].strip('`').upper()}`" for row in rows)
    assert all(row["value"] and row["default"] and row["meaning"] for row in rows)
    (slots,) = (row for row in rows if row["setting"] == "`slots`")
    assert (slots["value"], slots["default"]) == ("an integer of at least 1", "8")


def test_lists_mean_the_same_in_a_file_and_in_a_variable(tmp_path: Path) -> None:
    in_file, in_variables = written(FILES[0], tmp_path), exported(VARIABLES[0], tmp_path)
    assert in_file["server.allow_host"] == ("llm.example.org",)
    assert in_variables == {key: in_file[key] for key in ("server.addr", "server.alias")}
    assert in_file["server.addr"] == ("127.0.0.1:9000", "unix:/tmp/llmd.sock")
    lists = {key.partition(".")[2] for key, field in setting_fields().items() if field.default == ()}
    assert set(CODE.findall(TEXT.partition("**Lists** (")[2].partition(")")[0])) == lists


def test_sizes_durations_and_switches_mean_the_same_in_a_file_and_in_a_variable(tmp_path: Path) -> None:
    in_file, in_variables = written(FILES[1], tmp_path), exported(VARIABLES[1], tmp_path)
    assert in_variables.items() <= in_file.items()
    assert in_variables == {
        "server.keep_alive": 5400.0, "engine.kv_memory": 4 << 30, "server.require_key": True
    }  # fmt: skip
    assert in_file["server.max_body"] == 100 * 1000**2
    assert tomllib.loads(FILES[1])["models"] == {"Qwen/Qwen3-4B": {"max_ctx": 32768}}


def test_an_empty_variable_is_not_set(tmp_path: Path) -> None:
    assert given(tmp_path, {"LLMD_SLOTS": ""}) == {}


@pytest.mark.parametrize("page", [TEXT, (DOCS / "commands.md").read_text()], ids=["settings", "commands"])
def test_the_settings_of_single_models_are_named(page: str) -> None:
    others = set(PER_MODEL) - set(EngineConfig.__struct_fields__)
    assert "`[engine]`" in page
    assert all(f"`{name}`" in page for name in others)
