"""``kill -9`` of the engine while it streams: every request ends as if nothing had happened."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from llmd.cli.doctor.daemon import loaded_models
from llmd.client import Answer, Client
from llmd.pager.states import SNAPSHOT_LEN
from tests.chaos.conftest import SLOTS
from tests.golden.models.hybrids import qwen3_5_moe
from tests.serving.engine_state import report
from tests.serving.http import chat, send
from tests.serving.model import write_model
from tests.serving.processes import children
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

NUM_STREAMS = 8
MAX_TOKENS = 60
LONG_STEM = "Why is the sky blue, and the sea? " * 9
"""Longer than what is between two snapshots of a state."""
POLL_S = 0.01
OnPiece = Callable[[], None]


def fields(stream: int) -> dict[str, Any]:
    """Greedy and sampled requests, whose answers differ;
    some have samplers with a state or a memory of their own, some search.
    """
    sampled: dict[str, Any] = {"temperature": 1.2, "seed": stream}
    remembering = {"mirostat": 2, "mirostat_tau": 4, "dry_multiplier": 0.8, "frequency_penalty": 0.3}
    sampled |= remembering if stream % 4 == 3 else {"top_k": 40}
    greedy: dict[str, Any] = {"temperature": 0}
    greedy |= {"use_beam_search": True, "best_of": 3} if stream % 4 == 2 else {}
    return {"max_tokens": MAX_TOKENS, "ignore_eos": True} | (sampled if stream % 2 else greedy)


def read_stream(
    client: Client, stream: int, on_piece: OnPiece, *, stem: str = "", **more: Any
) -> tuple[str, str | None, int]:
    """Text, finish reason and number of tokens of one stream, whose prompt begins with ``stem``."""
    messages = [{"role": "user", "content": f"{stem}Count to {stream}"}]
    pieces: list[Answer] = []
    for piece in client.stream_chat(messages, **{"model": MODEL} | fields(stream) | more):
        pieces.append(piece)
        on_piece()
    usage = pieces[-1].usage
    assert usage is not None
    finish = next(piece.finish for piece in pieces if piece.finish)
    return "".join(piece.text for piece in pieces), finish, usage.completion_tokens


def read_all(
    daemon: RunningDaemon, on_piece: OnPiece, streams: int = NUM_STREAMS, **more: Any
) -> list[tuple[str, str | None, int]]:
    """Run every stream at once."""
    # Once the time of the test is over, the client ends its streams, and so the threads of the pool.
    with ThreadPoolExecutor(streams) as pool, daemon.client() as client:
        return list(pool.map(lambda n: read_stream(client, n, on_piece, **more), range(streams)))


class KillAt:
    """Kills the engine, or the process that ``victim`` returns, at each of these numbers of received pieces;
    ``number`` is the signal.
    """

    def __init__(
        self,
        daemon: RunningDaemon,
        *counts: int,
        victim: Callable[[RunningDaemon], int] | None = None,
        number: int = signal.SIGKILL,
    ) -> None:
        self._number = number
        self._daemon = daemon
        self._counts = counts
        self._victim = victim or engine_pid
        self._lock = threading.Lock()
        self._pieces = 0
        self.killed: list[int] = []

    def __call__(self) -> None:
        with self._lock:
            self._pieces += 1
            if self._pieces in self._counts:
                pid = self._victim(self._daemon)
                while pid in self.killed:  # its end has not been noticed yet: these pieces came before
                    time.sleep(POLL_S)
                    pid = self._victim(self._daemon)
                self.killed.append(pid)
                os.kill(pid, self._number)


def engine_pid(daemon: RunningDaemon) -> int:
    """The engine, once there is one: after a kill the next takes a moment."""
    while (pid := daemon.client().ps()[0]["engine_pid"]) is None:
        time.sleep(POLL_S)
    return int(pid)


def grammar_pid(daemon: RunningDaemon) -> int:
    """The process that the engine has started."""
    (child,) = children(engine_pid(daemon))
    return child


def test_streams_of_a_hybrid_mixture_go_on_with_the_same_tokens(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL, family=qwen3_5_moe)
    with running_daemon(directories, slots=SLOTS) as daemon:
        undisturbed = read_all(daemon, lambda: None)
        killer = KillAt(daemon, 40)
        assert read_all(daemon, killer) == undisturbed
        assert len(killer.killed) == 1


def test_states_of_a_hybrid_mixture_come_from_snapshots_of_the_new_engine(
    tmp_path: Path, probes: Path
) -> None:
    """The prompts begin with the same text, and each answer is longer than an engine can be ahead."""
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL, family=qwen3_5_moe, context_len=1024)
    long: dict[str, Any] = {"stem": LONG_STEM, "max_tokens": 200}
    with running_daemon(directories, device="cpu", slots=SLOTS) as daemon:
        undisturbed = read_all(daemon, lambda: None, **long)
        killer = KillAt(daemon, 40, 200)
        assert read_all(daemon, killer, **long) == undisturbed
        assert len(set(killer.killed)) == 2
        assert engine_pid(daemon) not in killer.killed
        assert report(daemon)["cached_tokens"] >= SNAPSHOT_LEN


def test_streams_go_on_with_exactly_the_same_tokens(daemon: RunningDaemon) -> None:
    undisturbed = read_all(daemon, lambda: None)
    assert {count for _, _, count in undisturbed} == {MAX_TOKENS}
    assert len({text for text, _, _ in undisturbed}) == NUM_STREAMS
    killer = KillAt(daemon, 40, 200)
    assert read_all(daemon, killer) == undisturbed
    assert len(set(killer.killed)) == 2
    # The second engine may have made all tokens before the clients read the piece at which it was killed.
    while engine_pid(daemon) in killer.killed:
        time.sleep(POLL_S)
    (row,) = daemon.client().ps()
    assert row["restarts"] == 2


def test_answers_under_grammars_go_on_with_exactly_the_same_tokens(daemon: RunningDaemon) -> None:
    pattern = "([a-z]{3,9} ){5,9}[A-Z]{3}[.]"
    bound: dict[str, Any] = {"guided_regex": pattern, "max_tokens": 120, "ignore_eos": False}
    undisturbed = read_all(daemon, lambda: None, **bound)
    assert {finish for _, finish, _ in undisturbed} == {"stop"}
    assert all(re.fullmatch(pattern, text) for text, _, _ in undisturbed)
    killer = KillAt(daemon, 40, 200)
    assert read_all(daemon, killer, **bound) == undisturbed
    assert len(set(killer.killed)) == 2


def test_answers_go_on_when_the_process_of_grammars_is_killed(daemon: RunningDaemon) -> None:
    bound: dict[str, Any] = {
        "guided_regex": "([a-z]{3,9} ){5,9}[A-Z]{3}[.]",
        "max_tokens": 120,
        "ignore_eos": False,
    }
    undisturbed = read_all(daemon, lambda: None, **bound)
    killer = KillAt(daemon, 40, victim=grammar_pid)
    assert read_all(daemon, killer, **bound) == undisturbed
    assert len(killer.killed) == 1


def test_engine_that_keeps_dying_fails_its_model_and_a_reload_fixes_it(daemon: RunningDaemon) -> None:
    client = daemon.client()
    killed: set[int] = set()
    while (row := client.ps()[0])["status"] != "failed":
        pid = row["engine_pid"]
        if pid is not None and row["status"] == "loaded" and pid not in killed:
            killed.add(pid)
            os.kill(pid, signal.SIGKILL)
    assert len(killed) == 4
    refused = chat(daemon)
    assert (refused.status, refused.error["code"]) == (503, "model_failed")
    assert "SIGKILL" in refused.error["message"]
    assert refused.headers["x-should-retry"] == "false"
    readiness = send(daemon, "GET", "/ready")
    assert (readiness.status, readiness.json["status"]) == (503, "failed")
    assert "SIGKILL" in readiness.json["failed"][MODEL]
    assert "on reference died 4 times" in refused.error["message"]
    (check,) = (check for check in loaded_models(client) if check.status == "fail")
    assert (check.id, check.status, "SIGKILL" in check.seen) == (f"loaded:{MODEL}", "fail", True)
    assert check.fix == f"start it again: `llmd load {MODEL}`"
    assert list(client.load(MODEL))[-1]["devices"] == ["reference"]
    assert "fail" not in [check.status for check in loaded_models(client)]
    assert chat(daemon).status == 200
    assert send(daemon, "GET", "/ready").status == 200


def test_an_engine_that_hangs_is_replaced_and_streams_go_on(
    tmp_path: Path, probes: Path, slow_card: str
) -> None:
    directories = directories_below(tmp_path, probes)
    write_model(directories.models / MODEL)
    # A busy machine may let an engine that starts wait for a second.
    with running_daemon(directories, device=slow_card, engine_timeout_s=4.0) as daemon:
        undisturbed = read_all(daemon, lambda: None)
        again = read_all(daemon, KillAt(daemon, 40, number=signal.SIGSTOP))
        (row,) = daemon.client().ps()
    assert again == undisturbed
    assert row["restarts"] == 1
