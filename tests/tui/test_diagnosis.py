from __future__ import annotations

from llmd.api.errors import LlmdError
from llmd_tui.daemon.access import Event
from llmd_tui.diagnosis import DiagnosisCard, diagnosis
from llmd_tui.state.daemon_state import DaemonState
from tests.tui.conftest import MakeTui, settled
from tests.tui.scripted_daemon import ScriptedDaemon, model, request
from tests.tui.test_app import First


async def test_a_card_says_what_is_there_and_what_failed(daemon: ScriptedDaemon) -> None:
    state = DaemonState()
    warning = {"level": "warn", "text": "3 requests wait"}
    now = model("guide", output_tokens=250, steps=110, verdicts=[warning])
    snapshot = {"version": "0.1.0", "models": [model("guide")], "requests": []}
    state.apply(Event("snapshot", 1, snapshot), 0.0)
    state.apply(Event("report", 2, {"models": [now]}), 1.0)
    failed = request("r1", phase="end", status=503, error="engine_crashed")
    state.apply(Event("request", 3, failed), 1.0)
    state.apply(Event("model", 4, {"model": "guide", "phase": "restarting", "reason": "signal 9"}), 1.0)
    stage = {"device": "cpu", "parts": "embed, layers 0-3, head"}
    daemon.gets["/llmd/plan"] = {"models": [{"name": "guide", "stages": [stage]}]}
    daemon.gets["/llmd/devices"] = {
        "devices": [
            {"name": "cpu", "ok": True, "description": "AMD EPYC"},
            {"name": "cuda", "ok": False, "kind": "cuda", "reason": "no driver"},
        ]
    }
    daemon.gets["/llmd/plugins"] = LlmdError("no right to manage")
    card = await diagnosis(daemon, state)
    for line in (
        "- daemon 0.1.0",
        "- cpu: AMD EPYC",
        "- cuda: cuda, not used: no driver",
        "- guide: embed, layers 0-3, head on cpu",
        "  - 3 requests wait",
        "decode_tps 50.00",
        "- /v1/chat/completions: 503 engine_crashed",
        "- guide restarting: signal 9",
        "- not answered: /llmd/plugins: no right to manage",
    ):
        assert line in card


async def test_a_key_shows_the_card_and_another_copies_it(daemon: ScriptedDaemon, make_tui: MakeTui) -> None:
    tui = make_tui(First)
    daemon.snapshot(models=(model("guide"),))
    async with tui.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await pilot.press("d")
        await settled(pilot)
        assert isinstance(tui.screen, DiagnosisCard)
        await pilot.press("y")
        await settled(pilot)
        assert "### llmd" in (tui.folders.state / "copied.txt").read_text()
        await pilot.press("escape")
        assert isinstance(tui.screen, First)
