"""Our side is the real engine: it prefills, decodes open sequences, and starts as the page says."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.checkpoint import write_checkpoint
from bench.cpu_profiles import QUICK
from bench.cpu_sides import Room, busy_process, drop_cached, kept_by_dense, open_llmd, started
from bench.servers import cpu_s, family
from bench.shapes import Shape
from bench.worker import Side
from tests.bench.families import DEEPSEEK_V4, LLAMA, QWEN3_5, QWEN3_MOE

SHAPE = LLAMA
PROFILE = replace(QUICK, prompt=100, depths=(300,), batches=(1, 5), rounds=2, steps=3, threads=1)


def opened(shape: Shape, folder: Path) -> Side:
    directory = write_checkpoint(shape, folder / "model")
    return open_llmd(directory, "q8", folder / "cache", Room.for_profile(PROFILE, shape), 1, "generic")


@pytest.fixture
def llmd(tmp_path: Path) -> Side:
    return opened(SHAPE, tmp_path)


@pytest.mark.parametrize("shape", [LLAMA, QWEN3_MOE, QWEN3_5, DEEPSEEK_V4], ids=lambda shape: shape.family)
def test_the_room_is_enough_for_every_case(shape: Shape, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    with opened(shape, tmp_path) as llmd:
        for batch, length in ((1, 100), (5, 64), (1, 300)):
            prompts = generator.integers(0, shape.vocab, (batch, length)).tolist()
            assert llmd.call("open", prompts, PROFILE.grown) > 0
            assert all(llmd.call("decode", PROFILE.steps) > 0 for _ in range(PROFILE.rounds + 1))
            llmd.call("close")


def test_a_start_is_told_with_its_memory(llmd: Side) -> None:
    with llmd:
        start = started(llmd)
    assert 0 < start.load_s < start.first_token_s
    assert start.resident["anonymous"] > start.kv_bytes > 0  # type: ignore[operator]


def test_logits_are_those_of_each_token(llmd: Side, tmp_path: Path) -> None:
    with llmd:
        for count in (3, 5):
            llmd.call("logits", [1, 2, 3, 4, 5][:count], str(tmp_path / f"{count}.npy"))
    short, long = (np.load(tmp_path / f"{count}.npy") for count in (3, 5))
    assert long.shape == (5, SHAPE.vocab)
    assert np.array_equal(short, long[:3])


def test_files_may_be_dropped_from_the_systems_cache(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").write_bytes(b"a" * 5000)
    (tmp_path / "b").write_bytes(b"b")
    drop_cached(tmp_path / "folder", tmp_path / "b")
    assert (tmp_path / "folder" / "a").read_bytes() == b"a" * 5000


def test_the_busy_process_is_our_own_works_all_the_time_and_ends() -> None:
    before = set(family(os.getpid()))
    with busy_process():
        (busy,) = set(family(os.getpid())) - before
        began_s = cpu_s(busy)
        while cpu_s(busy) < began_s + 0.1:
            os.sched_yield()
    assert busy not in family(os.getpid())


def test_a_format_that_is_not_computed_with_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    directory = write_checkpoint(SHAPE, tmp_path / "model")
    room = Room.for_texts(64, SHAPE.kv_token_bytes)
    with pytest.raises(RuntimeError, match="llmd ended with 1"):
        open_llmd(directory, "q8_0", tmp_path / "cache", room, 1)
    assert "q8_0" in capfd.readouterr().err


def test_a_configuration_says_what_a_dense_model_keeps(tmp_path: Path) -> None:
    assert kept_by_dense(write_checkpoint(SHAPE, tmp_path / "model")) == SHAPE.kv_token_bytes
