"""The servers take turns, and the real daemon answers the load."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from bench.checkpoint import STUDENT_T5, draw_bf16, to_float32, write_checkpoint
from bench.quiet import MOST_THROWN_OUT, QuietRounds
from bench.servers import Server, llmd_server
from bench.serving import KIND, QUANT, WORKLOADS, Workload, interleave, load, seeds_of
from bench.shapes import Shape
from llmd.api.integer_formats import INTEGER_FORMATS
from llmd.models.formats.dequantization import dequantize
from llmd.models.formats.quantization import quantize
from tests.bench.watches import Watch, scripted

TINY = Shape("tiny", hidden=64, layers=2, heads=2, kv_heads=1, head_dim=32, ffn=128, vocab=1000)
OURS, PEER = Server("ours", "http://127.0.0.1:1", 1), Server("peer", "http://127.0.0.1:2", 2)


class Load:
    """A load that returns and records its arguments."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def __call__(self, server: Server, seed: int) -> dict[str, Any]:
        self.asked.append((server.name, seed))
        return {"name": server.name, "seed": seed}


def test_sides_take_turns_on_the_same_prompts_and_each_goes_first() -> None:
    put = Load()
    rounds = interleave("load", OURS, PEER, iter(range(7, 10)), put, QuietRounds(Watch), 2)
    assert put.asked == [("peer", 7), ("ours", 7), ("ours", 8), ("peer", 8), ("peer", 9), ("ours", 9)]
    assert [(ours["name"], peer["name"], ours["seed"], peer["seed"]) for ours, peer in rounds] == [
        ("ours", "peer", 8, 8),
        ("ours", "peer", 9, 9),
    ]


def test_a_round_in_which_others_worked_is_repeated_with_new_prompts() -> None:
    quiet = QuietRounds(scripted(0.5, 0.0))
    (found,) = interleave("load", OURS, PEER, iter(range(7, 10)), Load(), quiet, 1)
    assert found[0]["seed"] == 9
    assert len(quiet.tally.thrown_out) == 1


def test_both_formats_have_the_same_bits_and_the_same_error() -> None:
    values = to_float32(draw_bf16(1, (256, 2048), STUDENT_T5))
    ours = quantize(values, QUANT)
    theirs = gguf.quants.quantize(values, gguf.GGMLQuantizationType[KIND])
    errors = [
        float(((found - values).astype(np.float64) ** 2).sum())
        for found in (
            dequantize(ours),
            gguf.quants.dequantize(theirs, gguf.GGMLQuantizationType[KIND]),
        )
    ]
    assert errors[0] == pytest.approx(errors[1], rel=0.01)
    assert theirs.size == 256 * INTEGER_FORMATS[QUANT].weight_bytes(2048)


def test_no_two_rounds_have_the_same_prompts() -> None:
    most = 1 + 5 + MOST_THROWN_OUT
    seeds = [seed for load in seeds_of(3) for seed in islice(load, most)]
    assert len(seeds) == len(set(seeds)) == 3 * most


def test_workloads_may_be_scaled_but_never_to_nothing() -> None:
    assert Workload("x", (), 32).scaled(0.25).num_prompts == 8
    assert all(workload.scaled(0.001).num_prompts == 1 for workload in WORKLOADS)


def test_a_server_that_does_not_start_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="did not become ready"),
        llmd_server(tmp_path / "absent", tmp_path, quant=QUANT, slots=1, context_len=64),
    ):
        pass


def test_the_load_is_answered_and_a_failure_is_told(tmp_path: Path) -> None:
    model = write_checkpoint(TINY, tmp_path / "tiny")
    short = Workload("short", ("--input-len", "20", "--output-len", "6", "--max-concurrency", "2"), 3)
    long = Workload("long", ("--input-len", "200", "--output-len", "6"), 2)
    with llmd_server(model, tmp_path, quant=QUANT, slots=2, context_len=64) as server:
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
