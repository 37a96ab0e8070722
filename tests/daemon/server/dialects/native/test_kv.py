from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.serving.engine_state import asked, report, wait_until
from tests.serving.http import complete, send
from tests.serving.model import write_model
from tests.serving.running import EMBEDDER, MODEL, RunningDaemon, directories_below, running_daemon

LONG = {"max_tokens": 1 << 13, "ignore_eos": True}


def group_of(daemon: RunningDaemon, query: str = "") -> dict[str, Any]:
    reply = send(daemon, "GET", f"/llmd/kv{query}").json
    (group,) = reply["groups"]
    expanded = [state for state, count in group["map"] for _ in range(count)]
    assert {state: expanded.count(state) for state in ("free", "cached", "used", "shared")} == {
        state: group[state] for state in ("free", "cached", "used", "shared")
    }
    assert len(expanded) == group["blocks"]
    return dict(group)


def test_blocks_are_free_then_used_or_shared_then_cached(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL, context_len=1 << 14)
    with running_daemon(directories) as daemon:
        before = group_of(daemon)
        assert (before["free"], before["block_len"]) == (before["blocks"], 16)
        prompt = "x" * 100
        with asked(daemon, {"messages": [{"role": "user", "content": prompt}], "n": 2, **LONG}):
            wait_until(daemon, running=2)
            during = group_of(daemon, f"?model={MODEL}")
            assert during["shared"] >= 100 // 16
            assert during["used"] > 0
            assert report(daemon)["kv_blocks_used"] > 0
        wait_until(daemon, running=0)
        after = group_of(daemon)
    assert (after["used"], after["shared"]) == (0, 0)
    assert after["cached"] >= 100 // 16


def test_a_model_that_is_not_loaded_is_not_found(daemon: RunningDaemon) -> None:
    complete(daemon)
    reply = send(daemon, "GET", "/llmd/kv?model=absent")
    assert (reply.status, reply.error["code"]) == (404, "model_not_found")


def test_a_model_must_be_named_unless_one_is_loaded(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    with running_daemon(directories, models=()) as daemon:
        reply = send(daemon, "GET", "/llmd/kv")
    assert reply.status == 400


def test_an_embedding_model_has_blocks_too(embedder: RunningDaemon) -> None:
    assert group_of(embedder, f"?model={EMBEDDER}")["free"] > 0
