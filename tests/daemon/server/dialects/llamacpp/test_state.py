from __future__ import annotations

from tests.serving.http import send
from tests.serving.model import CONTEXT_LEN, TEMPLATE
from tests.serving.running import MODEL, RunningDaemon


def test_props_tell_what_is_served(daemon: RunningDaemon) -> None:
    body = send(daemon, "GET", f"/props?model={MODEL}").json
    assert body["default_generation_settings"]["n_ctx"] == CONTEXT_LEN
    said = send(daemon, "POST", "/completion", {"model": MODEL, "prompt": "a", "n_predict": 1}).json
    assert body["default_generation_settings"]["params"] == said["generation_settings"] | {
        "n_predict": -1,
        "max_tokens": -1,
    }
    assert body["total_slots"] == 8
    assert (body["model_alias"], body["model_path"].endswith(f"/{MODEL}")) == (MODEL, True)
    assert (body["chat_template"], body["bos_token"], body["eos_token"]) == (TEMPLATE, "<s>", "<|im_end|>")
    assert body["modalities"] == {"vision": False, "audio": False}
    assert body["build_info"].startswith("llmd ")


def test_slots_are_free_or_busy(daemon: RunningDaemon) -> None:
    body = send(daemon, "GET", f"/slots?model={MODEL}").json
    assert [slot["id"] for slot in body] == list(range(8))
    assert {slot["n_ctx"] for slot in body} == {CONTEXT_LEN}
    assert send(daemon, "GET", f"/slots?model={MODEL}&fail_on_no_slot=1").status == 200
    assert send(daemon, "GET", "/slots?model=nobody").status == 404
