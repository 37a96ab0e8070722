"""The screen of models: its keys, over a scripted daemon."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from llmd.api.errors import LlmdError
from llmd_tui.app import LlmdTui
from llmd_tui.preferences import Preferences
from llmd_tui.screen import DaemonScreen
from llmd_tui.screens.models.screen import ModelsScreen
from llmd_tui.widgets.filter_table import FilterTable
from llmd_tui.widgets.table_rows import Sorting
from tests.tui.conftest import MakeTui, settled
from tests.tui.pilots import assert_pictures, lines, notices, press, text
from tests.tui.screens.models.model_answers import DEVICES, GIB, MODELS, SERVED, SHOWN, stored
from tests.tui.scripted_daemon import ScriptedDaemon, model, request


class ChatScreen(DaemonScreen):
    NAME = "chat"


@pytest.fixture
def tui(daemon: ScriptedDaemon, make_tui: MakeTui) -> LlmdTui:
    """The interface with the models of `model_answers`, of which ``guide`` is loaded."""
    daemon.gets |= {"/llmd/models": MODELS, "/llmd/ps": SERVED, "/llmd/devices": DEVICES}
    daemon.posts |= {"/llmd/stop": {}, "/api/copy": {}, "/api/show": SHOWN}
    daemon.deletes["/api/delete"] = {}
    daemon.snapshot(models=(model("guide"),))
    return make_tui(ModelsScreen, ChatScreen, first="models")


async def go_to(pilot: Pilot[None], name: str) -> None:
    """Move the cursor to a model."""
    table = pilot.app.screen.query_one(FilterTable)
    await press(pilot, "home")
    while table.selected != name:
        before = table.selected
        await press(pilot, "down")
        assert table.selected != before, f"{name} is not shown"


async def test_models_are_listed_with_their_states(tui: LlmdTui) -> None:
    async with tui.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        shown = text(tui)
        assert "› guide, assistant" in shown
        assert "● loaded " in shown
        assert "✗ failed: config.json h…" in shown
        assert "derived from guide" in shown
        assert "5 models" in shown
        await go_to(pilot, "broken")
        assert "Cannot be used  config.json has no num_hidden_layers (pull it again)" in text(tui)


async def test_a_load_is_followed_in_the_table(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await go_to(pilot, "meta/Llama-3.2-1B")
        await press(pilot, "l")
        assert ("/llmd/load", {"model": "meta/Llama-3.2-1B"}) in daemon.asked
        daemon.send("model", model="meta/Llama-3.2-1B", phase="loading", step="weights", done=1, total=4)
        await settled(pilot)
        assert "◐ ████░░░░░░░░░░░░░ 25%" in text(tui)
        assert "Loading  weights" in text(tui)
        daemon.put("/llmd/load", {"step": "loaded", "devices": ["cpu"]}, None)
        await settled(pilot)
        assert notices(tui) == ["Loaded meta/Llama-3.2-1B on cpu."]


async def test_a_refused_load_is_explained_until_one_closes_it(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    daemon.put("/llmd/load", LlmdError("broken cannot be loaded", hint="pull it again"))
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await go_to(pilot, "broken")
        await press(pilot, "l")
        await settled(pilot)
        assert "broken was not loaded" in text(tui)
        assert "broken cannot be loaded (pull it again)" in text(tui)
        await press(pilot, "escape")
        assert "was not loaded" not in text(tui)


@pytest.mark.parametrize(("key", "loads"), [("l", True), ("escape", False)])
async def test_a_model_that_is_too_large_is_loaded_only_if_one_insists(
    tui: LlmdTui, daemon: ScriptedDaemon, *, key: str, loads: bool
) -> None:
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await go_to(pilot, "big-70B")
        await press(pilot, "l")
        await settled(pilot)
        assert "The weights of big-70B alone have 140.0 GiB" in text(tui)
        await press(pilot, key)
        await settled(pilot)
        assert (("/llmd/load", {"model": "big-70B"}) in daemon.asked) is loads


async def test_a_loaded_model_is_not_loaded_again(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await press(pilot, "l")
        assert notices(tui) == ["guide is loaded already."]
        assert "/llmd/load" not in [path for path, _ in daemon.asked]


@pytest.mark.parametrize("name", ["guide", "pirate"])
async def test_an_idle_model_is_unloaded_at_once(tui: LlmdTui, daemon: ScriptedDaemon, name: str) -> None:
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await go_to(pilot, name)
        await press(pilot, "u")
        await settled(pilot)
        assert ("/llmd/stop", {"model": "guide"}) in daemon.asked  # the base of a derived one


async def test_a_busy_model_is_unloaded_after_a_question(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    daemon.send("request", **request("r1"))
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await press(pilot, "u")
        assert "guide answers a request, which ends with an error." in text(tui)
        assert "/llmd/stop" not in [path for path, _ in daemon.asked]
        await press(pilot, "u")
        await settled(pilot)
        assert ("/llmd/stop", {"model": "guide"}) in daemon.asked


async def test_what_is_not_loaded_is_not_unloaded(tui: LlmdTui) -> None:
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await go_to(pilot, "big-70B")
        await press(pilot, "u")
        assert notices(tui) == ["big-70B is not loaded."]


STEP = {"status": "pulling", "digest": "sha256:1", "file": "model.safetensors", "total": 100, "completed": 50}


async def test_a_pull_is_followed_to_its_end(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    daemon.put("/llmd/pull", STEP)
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await press(pilot, "p", "o", "slash", "x", "enter")
        await settled(pilot)
        assert ("/llmd/pull", {"model": "o/x"}) in daemon.asked
        assert "Pulling o/x: 0 of 1 files, 50 B of 100 B" in text(tui)
        assert "50%  50 B of 100 B           model.safetensors" in text(tui)
        daemon.gets["/llmd/models"] = {"models": [stored("o/x")]}
        daemon.put("/llmd/pull", None)
        await settled(pilot)
        assert notices(tui) == ["Pulled o/x."]
        assert "Pulling" not in text(tui)
        assert "› o/x" in text(tui)


async def test_the_cursor_stays_where_it_was_moved_during_a_pull(
    tui: LlmdTui, daemon: ScriptedDaemon
) -> None:
    daemon.put("/llmd/pull", STEP)
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await press(pilot, "p", "x", "enter")
        await go_to(pilot, "meta/Llama-3.2-1B")
        daemon.gets["/llmd/models"] = {"models": [*MODELS["models"], stored("x")]}
        daemon.put("/llmd/pull", None)
        await settled(pilot)
        assert notices(tui) == ["Pulled x."]
        assert "› meta/Llama-3.2-1B" in text(tui)


@pytest.mark.parametrize(
    ("leave", "answer", "goes_on"),
    [("escape", "g", True), ("escape", "escape", True), ("ctrl+c", "e", False)],
)
async def test_one_who_leaves_a_pull_says_whether_it_goes_on(
    tui: LlmdTui, daemon: ScriptedDaemon, *, leave: str, answer: str, goes_on: bool
) -> None:
    daemon.put("/llmd/pull", STEP)
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await press(pilot, "p", "x", "enter", leave)
        assert "The pull of x" in text(tui)
        await press(pilot, answer)
        await settled(pilot)
        assert ("Pulling x" in text(tui)) is goes_on
        assert (daemon.left == []) is goes_on
        assert notices(tui) == ([] if goes_on else ["Ended the pull of x."])


async def test_a_failed_pull_is_explained(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    daemon.put("/llmd/pull", STEP, LlmdError("the disk is full", hint="free some space"))
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await press(pilot, "p", "x", "enter")
        await settled(pilot)
        assert "x was not pulled" in text(tui)
        assert "the disk is full (free some space)" in text(tui)


async def test_pulls_of_other_clients_are_shown(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    daemon.gets["/llmd/models"] = MODELS | {"pulls": [{"name": "org/other", "steps": [STEP]}]}
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        assert "Pulling org/other" in text(tui)
        await press(pilot, "escape")  # not ours to end
        assert "The pull of" not in text(tui)


async def test_a_model_is_removed_after_a_question(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await go_to(pilot, "meta/Llama-3.2-1B")
        await press(pilot, "x")
        assert "frees 2.0 GiB" in text(tui)
        await press(pilot, "enter")  # the harmless answer has the focus
        assert "/api/delete" not in [path for path, _ in daemon.asked]
        await press(pilot, "x", "r")
        await settled(pilot)
        assert ("/api/delete", {"model": "meta/Llama-3.2-1B"}) in daemon.asked
        assert notices(tui) == ["Removed meta/Llama-3.2-1B."]


async def test_files_of_others_are_not_removed(tui: LlmdTui) -> None:
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await go_to(pilot, "big-70B")
        await press(pilot, "x")
        assert notices(tui) == ["llmd did not fetch big-70B; delete /models/big-70B yourself."]


async def test_a_model_is_copied_under_a_name_that_is_free(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await press(pilot, "c", *"broken", "enter")
        assert "there is a model broken already" in text(tui)
        await press(pilot, "2", "enter")
        await settled(pilot)
        assert ("/api/copy", {"source": "guide", "destination": "broken2"}) in daemon.asked
        assert notices(tui) == ["Copied guide to broken2."]


async def test_details_are_shown_and_refusals_said(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    async with tui.run_test(size=(100, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "i")
        await settled(pilot)
        assert "Capabilities  completion, tools" in text(tui)
        assert "{% for m in messages %}" in text(tui)
        await press(pilot, "escape")
        daemon.posts["/api/show"] = LlmdError("model 'guide' not found")
        await press(pilot, "i")
        await settled(pilot)
        assert notices(tui) == ["model 'guide' not found"]


async def test_conversions_are_commands_to_copy(tui: LlmdTui) -> None:
    async with tui.run_test(size=(100, 40)) as pilot:
        await settled(pilot)
        await press(pilot, "v")
        assert "llmd convert guide guide-q8_0.gguf --quant q8_0" in text(tui)
        await press(pilot, "y", "y")  # the command, then the name
        await settled(pilot)
        assert "`llmd convert guide guide.gguf`" in notices(tui)[0]
        assert "the model's name" in notices(tui)[1]


async def test_enter_opens_a_chat_with_the_model(tui: LlmdTui) -> None:
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await go_to(pilot, "pirate")
        await press(pilot, "enter")
        await settled(pilot)
        assert (tui.current_mode, tui.preferences.model) == ("chat", "pirate")


async def test_the_cursor_stays_on_its_model_when_others_come(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await go_to(pilot, "big-70B")
        daemon.gets["/llmd/models"] = {"models": [stored("a"), *MODELS["models"]]}
        await press(pilot, "r")
        await settled(pilot)
        assert tui.screen.query_one(FilterTable).selected == "big-70B"
        assert "6 models" in text(tui)


async def test_the_order_is_kept_for_the_next_time(tui: LlmdTui) -> None:
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await press(pilot, "s", "s", "s")
        assert lines(tui)[2].split()[0] == "big-70B"
    assert Preferences.read(tui.folders.state).sorting == {"models": Sorting(2, is_reversed=True)}


async def test_ten_thousand_models_are_filtered_and_followed(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    daemon.gets["/llmd/models"] = {
        "models": [stored(f"m{number}", size_bytes=GIB) for number in range(10_000)]
    }
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        assert "10001 models" in text(tui)
        await press(pilot, "slash", *"m9999", "enter")
        daemon.send("model", model="m9999", phase="loading", step="weights", done=1, total=2)
        await settled(pilot)
        assert "1 of 10001 models" in text(tui)
        assert "› m9999" in text(tui)
        assert "50%" in text(tui)


async def test_pictures(tui: LlmdTui, daemon: ScriptedDaemon) -> None:
    daemon.send("model", model="meta/Llama-3.2-1B", phase="loading", step="weights", done=1, total=4)
    daemon.put("/llmd/pull", STEP)
    async with tui.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await press(pilot, "down", "p", *"Qwen3", "enter")
        await assert_pictures(pilot, "models")
