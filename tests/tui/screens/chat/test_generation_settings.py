from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import LlmdError
from llmd_tui.screens.chat.generation_settings import listed, with_number, with_schema, with_thinking
from llmd_tui.screens.chat.store.records import Settings


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("temperature", "0.5", Settings(temperature=0.5)),
        ("temp", " 1 ", Settings(temperature=1.0)),
        ("max-tokens", "20", Settings(max_tokens=20)),
        ("seed", "7", Settings(seed=7)),
        ("repetition_penalty", "1.1", Settings(repetition_penalty=1.1)),
    ],
)
def test_numbers_are_read(name: str, text: str, expected: Settings) -> None:
    assert with_number(Settings(), name, text) == expected


@pytest.mark.parametrize("text", ["", "default"])
def test_a_setting_can_be_left_to_the_model_again(text: str) -> None:
    assert with_number(Settings(top_k=3), "top_k", text) == Settings()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("heat", "1", "there is no setting heat; the settings are temperature, top_p"),
        ("temperature", "warm", "temperature must be a number, not 'warm'"),
        ("temperature", "nan", "must be a number"),
        ("seed", "1.5", "seed must be a whole number"),
    ],
)
def test_wrong_settings_are_said(name: str, text: str, words: str) -> None:
    with pytest.raises(LlmdError, match=words):
        with_number(Settings(), name, text)


def test_a_schema_is_read_from_its_file_and_removed_again(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text('{"type": "object"}')
    settings = with_schema(Settings(), f" {file} ")
    assert (settings.schema, settings.schema_file) == ({"type": "object"}, str(file))
    assert with_schema(settings, "") == Settings()


@pytest.mark.parametrize(("content", "words"), [(None, "cannot be read"), ("[1]", "is not a JSON schema")])
def test_files_without_a_schema_are_said(tmp_path: Path, content: str | None, words: str) -> None:
    file = tmp_path / "schema.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(LlmdError, match=words):
        with_schema(Settings(), str(file))


def test_a_file_that_is_too_large_is_said(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(LlmdError, match="larger than 1 MiB"):
        with_schema(Settings(), str(file))


def test_reasoning_is_on_off_or_the_models_choice() -> None:
    assert [with_thinking(Settings(), text).thinking for text in ("on", "off", "default")] == [
        True,
        False,
        None,
    ]
    with pytest.raises(LlmdError, match="on, off, default"):
        with_thinking(Settings(), "maybe")


def test_what_differs_from_the_model_is_listed() -> None:
    settings = Settings(temperature=0.0, thinking=False, schema_file="/a/b.json", schema={})
    assert listed(settings) == "temperature 0.0, reasoning off, schema b.json"
    assert listed(Settings(tools_file="/a/tools.json", tools=({},))) == "tools tools.json"
    assert listed(Settings()) == ""
