"""The serving benchmark takes turns, and its load is answered by the real daemon."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.checkpoint import write_checkpoint
from bench.servers import Server, llmd_server
from bench.serving import WORKLOADS, Workload, interleave, load, seeds_of
from bench.shapes import Shape
from bench.vocabulary import write_tokenizer

TINY = Shape("tiny", hidden=64, layers=2, heads=2, kv_heads=1, head_dim=32, ffn=128, vocab=1000)
OURS, PEER = Server("ours", "http://127.0.0.1:1", 1), Server("peer", "http://127.0.0.1:2", 2)


def test_sides_take_turns_on_the_same_prompts_and_each_goes_first() -> None:
    asked: list[tuple[str, int]] = []

    def measure(server: Server, seed: int) -> dict[str, Any]:
        asked.append((server.name, seed))
        return {"name": server.name, "seed": seed}

    rounds = interleave(OURS, PEER, range(7, 10), measure)
    assert asked == [("peer", 7), ("ours", 7), ("ours", 8), ("peer", 8), ("peer", 9), ("ours", 9)]
    assert [(ours["name"], peer["name"], ours["seed"], peer["seed"]) for ours, peer in rounds] == [
        ("ours", "peer", 8, 8),
        ("ours", "peer", 9, 9),
    ]


def test_no_two_rounds_have_the_same_prompts() -> None:
    seeds = [seed for workload in seeds_of(3, 5) for seed in workload]
    assert len(seeds) == len(set(seeds)) == 3 * 6


def test_workloads_may_be_scaled_but_never_to_nothing() -> None:
    assert Workload("x", (), 32).scaled(0.25).num_prompts == 8
    assert all(workload.scaled(0.001).num_prompts == 1 for workload in WORKLOADS)


def test_a_server_that_does_not_start_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="did not become ready"),
        llmd_server(tmp_path / "absent", tmp_path, slots=1, context_len=64),
    ):
        pass


def test_the_load_is_answered_and_a_failure_is_told(tmp_path: Path) -> None:
    model = write_checkpoint(TINY, tmp_path / "tiny")
    write_tokenizer(TINY.vocab, model)
    short = Workload("short", ("--input-len", "20", "--output-len", "6", "--max-concurrency", "2"), 3)
    long = Workload("long", ("--input-len", "200", "--output-len", "6"), 2)
    with llmd_server(model, tmp_path, slots=2, context_len=64) as server:
        found = load(short, model, server, 0)
        assert (found["completed"], found["total_output_tokens"]) == (3, 18)
        assert found["p100_itl_ms"] >= found["median_itl_ms"]
        assert 0 <= found["server_cpu_s"] <= server.cpu_s()
        assert server.resident_bytes() > 10 << 20
        with pytest.raises(RuntimeError, match="failed 2 requests"):
            load(long, model, server, 0)


def test_what_a_child_took_counts_after_its_end() -> None:
    own = Server("this", "", os.getpid())
    before_s = own.cpu_s()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass"], check=True)
    assert own.cpu_s() - before_s >= 0.15
