from __future__ import annotations

from pathlib import Path

from textual.widgets import Input, Static

from llmd_tui.screens.chat.model_settings import Range
from llmd_tui.screens.chat.store.records import Settings
from llmd_tui.screens.chat.widgets.settings_dialog import SettingsDialog
from tests.tui.screens.chat.widgets.shown_widget import alone


async def test_all_settings_are_shown_and_changed_at_once(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text("{}")
    before = Settings(model="guide", temperature=0.5, thinking=False, seed=3)
    answers: list[Settings | None] = []
    async with alone(Static()) as (pilot, app):
        await app.push_screen(SettingsDialog(before), answers.append)
        await pilot.pause()
        values = {field.id: field.value for field in app.screen.query(Input)}
        assert (values["temperature"], values["seed"], values["reasoning"]) == ("0.5", "3", "off")
        for name, text in {"seed": "", "top_k": "5", "reasoning": "on", "schema": str(schema)}.items():
            app.screen.query_one(f"#{name}", Input).value = text
        await pilot.press("enter")
        await pilot.pause()
    assert answers == [
        Settings("guide", temperature=0.5, top_k=5, thinking=True, schema_file=str(schema), schema={})
    ]


async def test_the_models_values_are_shown_and_ranges_checked() -> None:
    answers: list[Settings | None] = []
    async with alone(Static()) as (pilot, app):
        dialog = SettingsDialog(Settings(), {"temperature": Range(maximum=2)}, {"top_p": "0.9"})
        await app.push_screen(dialog, answers.append)
        await pilot.pause()
        assert app.screen.query_one("#top_p", Input).placeholder == "the model's default: 0.9"
        await pilot.press("3", "enter")
        await pilot.pause()
        assert "must be at most 2, not 3" in str(app.screen.query_one(".wrong", Static).content)
        await pilot.press("escape")
        await pilot.pause()
    assert answers == [None]


async def test_a_wrong_value_is_said_and_nothing_is_lost() -> None:
    answers: list[Settings | None] = []
    async with alone(Static()) as (pilot, app):
        await app.push_screen(SettingsDialog(Settings(top_p=0.9)), answers.append)
        await pilot.pause()
        await pilot.press(*"warm", "enter")
        await pilot.pause()
        wrong = app.screen.query_one(".wrong", Static)
        assert "temperature must be a number, not 'warm'" in str(wrong.content)
        await pilot.press("down", "up", "backspace")
        await pilot.pause()
        assert str(wrong.content) == ""
        await pilot.press("escape")
        await pilot.pause()
    assert answers == [None]
